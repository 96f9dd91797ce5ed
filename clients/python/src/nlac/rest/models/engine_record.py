from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.engine_kind import EngineKind, check_engine_kind

T = TypeVar("T", bound="EngineRecord")


@_attrs_define
class EngineRecord:
    """A registered engine."""

    adapter_dir: None | str
    """ Directory of the adapters as the engine sees it, if that differs from this service's path. """
    api_key_env: None | str
    """ Environment variable of this service with the engine's API key. """
    base_model: str
    """ Name of the base model on the engine. """
    draining: list[str]
    """ Replicas that get no new requests. Requests in progress finish. """
    hedge_ms: int | None
    """ Milliseconds after which an unanswered request is also sent to another replica. """
    kind: EngineKind
    """ Protocols of engines. """
    model: str
    """ Name of the model in specs, if engine and trainer use different names for it. """
    model_dir: None | str
    """ Directory of the base model's tokenizer and chat template, as this service sees it. Frozen engines
    need none. """
    name: str
    """ Name in specs. """
    seeds: bool
    """ Whether requests have a seed. """
    urls: list[str]
    """ `http://host:port` of every replica. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        adapter_dir: None | str
        adapter_dir = self.adapter_dir

        api_key_env: None | str
        api_key_env = self.api_key_env

        base_model = self.base_model

        draining = self.draining

        hedge_ms: int | None
        hedge_ms = self.hedge_ms

        kind: str = self.kind

        model = self.model

        model_dir: None | str
        model_dir = self.model_dir

        name = self.name

        seeds = self.seeds

        urls = self.urls

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "adapter_dir": adapter_dir,
                "api_key_env": api_key_env,
                "base_model": base_model,
                "draining": draining,
                "hedge_ms": hedge_ms,
                "kind": kind,
                "model": model,
                "model_dir": model_dir,
                "name": name,
                "seeds": seeds,
                "urls": urls,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_adapter_dir(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        adapter_dir = _parse_adapter_dir(d.pop("adapter_dir", None))

        def _parse_api_key_env(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        api_key_env = _parse_api_key_env(d.pop("api_key_env", None))

        base_model = d.pop("base_model")

        draining = cast(list[str], d.pop("draining"))

        def _parse_hedge_ms(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        hedge_ms = _parse_hedge_ms(d.pop("hedge_ms", None))

        kind = check_engine_kind(d.pop("kind"))

        model = d.pop("model")

        def _parse_model_dir(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        model_dir = _parse_model_dir(d.pop("model_dir", None))

        name = d.pop("name")

        seeds = d.pop("seeds")

        urls = cast(list[str], d.pop("urls"))

        engine_record = cls(
            adapter_dir=adapter_dir,
            api_key_env=api_key_env,
            base_model=base_model,
            draining=draining,
            hedge_ms=hedge_ms,
            kind=kind,
            model=model,
            model_dir=model_dir,
            name=name,
            seeds=seeds,
            urls=urls,
        )

        engine_record.additional_properties = d
        return engine_record

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
