from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.refused_line import RefusedLine


T = TypeVar("T", bound="ImportReport")


@_attrs_define
class ImportReport:
    """What became of the lines."""

    refused: list[RefusedLine]
    """ Lines that cannot be learnt from. """
    repeated: int
    """ Episodes that were there already, by their id or content. """
    stored: int
    """ Episodes that were stored. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        refused = []
        for refused_item_data in self.refused:
            refused_item = refused_item_data.to_dict()
            refused.append(refused_item)

        repeated = self.repeated

        stored = self.stored

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "refused": refused,
                "repeated": repeated,
                "stored": stored,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.refused_line import RefusedLine

        d = dict(src_dict)
        refused = []
        _refused = d.pop("refused")
        for refused_item_data in _refused:
            refused_item = RefusedLine.from_dict(refused_item_data)

            refused.append(refused_item)

        repeated = d.pop("repeated")

        stored = d.pop("stored")

        import_report = cls(
            refused=refused,
            repeated=repeated,
            stored=stored,
        )

        import_report.additional_properties = d
        return import_report

    @property
    def additional_keys(self) -> list[str]:
        return list(self.additional_properties.keys())

    def __getitem__(self, key: str) -> Any:
        return self.additional_properties[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.additional_properties[key] = value

    def __delitem__(self, key: str) -> None:
        del self.additional_properties[key]

    def __contains__(self, key: str) -> bool:
        return key in self.additional_properties
