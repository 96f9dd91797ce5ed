from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.tool_function_parameters import ToolFunctionParameters


T = TypeVar("T", bound="ToolFunction")


@_attrs_define
class ToolFunction:
    """What a tool does."""

    description: None | str
    """ What it does, for the model. """
    name: str
    """ Its name. """
    parameters: ToolFunctionParameters
    """ JSON Schema of its arguments. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        description: None | str
        description = self.description

        name = self.name

        parameters = self.parameters.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "description": description,
                "name": name,
                "parameters": parameters,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.tool_function_parameters import ToolFunctionParameters

        d = dict(src_dict)

        def _parse_description(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        description = _parse_description(d.pop("description", None))

        name = d.pop("name")

        parameters = ToolFunctionParameters.from_dict(d.pop("parameters"))

        tool_function = cls(
            description=description,
            name=name,
            parameters=parameters,
        )

        tool_function.additional_properties = d
        return tool_function

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
