from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.capabilities import Capabilities


T = TypeVar("T", bound="EnvironmentInfo")


@_attrs_define
class EnvironmentInfo:
    """An environment that jobs can name."""

    built_in: bool
    """ It is built in; no other program is needed. """
    capabilities: Capabilities
    """ What an environment can do. """
    name: str
    """ What `environment.kind` says. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        built_in = self.built_in

        capabilities = self.capabilities.to_dict()

        name = self.name

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "built_in": built_in,
                "capabilities": capabilities,
                "name": name,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.capabilities import Capabilities

        d = dict(src_dict)
        built_in = d.pop("built_in")

        capabilities = Capabilities.from_dict(d.pop("capabilities"))

        name = d.pop("name")

        environment_info = cls(
            built_in=built_in,
            capabilities=capabilities,
            name=name,
        )

        environment_info.additional_properties = d
        return environment_info

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
