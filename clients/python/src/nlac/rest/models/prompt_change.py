from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.part_change import PartChange, check_part_change
from ..models.prompt_part import PromptPart, check_prompt_part

T = TypeVar("T", bound="PromptChange")


@_attrs_define
class PromptChange:
    """Change of a part by a push."""

    change: PartChange
    """ Change of a part by a push. """
    part: PromptPart
    """ A part of a prompt set, one file each. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        change: str = self.change

        part: str = self.part

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "change": change,
                "part": part,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        change = check_part_change(d.pop("change"))

        part = check_prompt_part(d.pop("part"))

        prompt_change = cls(
            change=change,
            part=part,
        )

        prompt_change.additional_properties = d
        return prompt_change

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
