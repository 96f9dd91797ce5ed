from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.prompt_part import PromptPart, check_prompt_part

T = TypeVar("T", bound="PromptHash")


@_attrs_define
class PromptHash:
    """A part and the hash of its text."""

    hash_: str
    """ SHA-256 of the text, hex. Generations have it as `prompt_hash`. """
    part: PromptPart
    """ A part of a prompt set, one file each. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        hash_ = self.hash_

        part: str = self.part

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "hash": hash_,
                "part": part,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        hash_ = d.pop("hash")

        part = check_prompt_part(d.pop("part"))

        prompt_hash = cls(
            hash_=hash_,
            part=part,
        )

        prompt_hash.additional_properties = d
        return prompt_hash

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
