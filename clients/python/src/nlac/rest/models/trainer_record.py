from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.trainer_kind import TrainerKind, check_trainer_kind

T = TypeVar("T", bound="TrainerRecord")


@_attrs_define
class TrainerRecord:
    """A registered trainer."""

    api_key_env: None | str
    """ Environment variable of this service with the trainer's API key. """
    base_model: str
    """ Name of the base model on the trainer. """
    kind: TrainerKind
    """ Protocols of trainers. """
    model: str
    """ Name of the model in specs, if engine and trainer use different names for it. """
    name: str
    """ Name in specs. """
    url: str
    """ `http://host:port`. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        api_key_env: None | str
        api_key_env = self.api_key_env

        base_model = self.base_model

        kind: str = self.kind

        model = self.model

        name = self.name

        url = self.url

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "api_key_env": api_key_env,
                "base_model": base_model,
                "kind": kind,
                "model": model,
                "name": name,
                "url": url,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_api_key_env(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        api_key_env = _parse_api_key_env(d.pop("api_key_env", None))

        base_model = d.pop("base_model")

        kind = check_trainer_kind(d.pop("kind"))

        model = d.pop("model")

        name = d.pop("name")

        url = d.pop("url")

        trainer_record = cls(
            api_key_env=api_key_env,
            base_model=base_model,
            kind=kind,
            model=model,
            name=name,
            url=url,
        )

        trainer_record.additional_properties = d
        return trainer_record

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
