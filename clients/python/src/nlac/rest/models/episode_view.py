from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast
from uuid import UUID

from attrs import define as _attrs_define
from attrs import field as _attrs_field
from dateutil.parser import isoparse

from ..models.end_reason import EndReason, check_end_reason
from ..models.purpose import Purpose, check_purpose
from ..models.reward_status import RewardStatus, check_reward_status
from ..models.truncated_by import TruncatedBy, check_truncated_by

if TYPE_CHECKING:
    from ..models.chat_message import ChatMessage
    from ..models.tool import Tool


T = TypeVar("T", bound="EpisodeView")


@_attrs_define
class EpisodeView:
    """An episode as it is shown."""

    checkpoint_id: None | UUID
    created_at: datetime.datetime
    """ When it was stored. """
    end_reason: EndReason
    """ Why an episode ended. """
    error: None | str
    """ What failed. """
    id: UUID
    """ One rollout. """
    iteration: int
    """ Number of its iteration. """
    job_id: UUID
    """ A submitted job. """
    messages: list[ChatMessage]
    """ The whole conversation. """
    ordinal: int
    """ Its number among its like. """
    purpose: Purpose
    """ Why an episode was played. """
    return_: float | None
    """ Sum of rewards; null unless observed. """
    reward_status: RewardStatus
    """ Why a reward is there, or is not. A missing reward is never 0. """
    seed: int
    """ Seed of the environment. """
    success: bool | None
    """ Solved or not; null unless the environment said so. """
    task: str
    """ The task. """
    temperature: float
    """ Sampling temperature of the policy. """
    tools: list[Tool]
    """ Tools that the agent could call. """
    truncated_by: None | TruncatedBy
    turns: int
    """ Steps taken. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        checkpoint_id: None | str
        if isinstance(self.checkpoint_id, UUID):
            checkpoint_id = str(self.checkpoint_id)
        else:
            checkpoint_id = self.checkpoint_id

        created_at = self.created_at.isoformat()

        end_reason: str = self.end_reason

        error: None | str
        error = self.error

        id = str(self.id)

        iteration = self.iteration

        job_id = str(self.job_id)

        messages = []
        for messages_item_data in self.messages:
            messages_item = messages_item_data.to_dict()
            messages.append(messages_item)

        ordinal = self.ordinal

        purpose: str = self.purpose

        return_: float | None
        return_ = self.return_

        reward_status: str = self.reward_status

        seed = self.seed

        success: bool | None
        success = self.success

        task = self.task

        temperature = self.temperature

        tools = []
        for tools_item_data in self.tools:
            tools_item = tools_item_data.to_dict()
            tools.append(tools_item)

        truncated_by: None | str
        if isinstance(self.truncated_by, str):
            truncated_by = self.truncated_by
        else:
            truncated_by = self.truncated_by

        turns = self.turns

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "checkpoint_id": checkpoint_id,
                "created_at": created_at,
                "end_reason": end_reason,
                "error": error,
                "id": id,
                "iteration": iteration,
                "job_id": job_id,
                "messages": messages,
                "ordinal": ordinal,
                "purpose": purpose,
                "return": return_,
                "reward_status": reward_status,
                "seed": seed,
                "success": success,
                "task": task,
                "temperature": temperature,
                "tools": tools,
                "truncated_by": truncated_by,
                "turns": turns,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.chat_message import ChatMessage
        from ..models.tool import Tool

        d = dict(src_dict)

        def _parse_checkpoint_id(data: object) -> None | UUID:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                checkpoint_id_type_0 = UUID(data)

                return checkpoint_id_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | UUID, data)

        checkpoint_id = _parse_checkpoint_id(d.pop("checkpoint_id", None))

        created_at = isoparse(d.pop("created_at"))

        end_reason = check_end_reason(d.pop("end_reason"))

        def _parse_error(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        error = _parse_error(d.pop("error", None))

        id = UUID(d.pop("id"))

        iteration = d.pop("iteration")

        job_id = UUID(d.pop("job_id"))

        messages = []
        _messages = d.pop("messages")
        for messages_item_data in _messages:
            messages_item = ChatMessage.from_dict(messages_item_data)

            messages.append(messages_item)

        ordinal = d.pop("ordinal")

        purpose = check_purpose(d.pop("purpose"))

        def _parse_return_(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        return_ = _parse_return_(d.pop("return", None))

        reward_status = check_reward_status(d.pop("reward_status"))

        seed = d.pop("seed")

        def _parse_success(data: object) -> bool | None:
            if data is None:
                return data
            return cast(bool | None, data)

        success = _parse_success(d.pop("success", None))

        task = d.pop("task")

        temperature = d.pop("temperature")

        tools = []
        _tools = d.pop("tools")
        for tools_item_data in _tools:
            tools_item = Tool.from_dict(tools_item_data)

            tools.append(tools_item)

        def _parse_truncated_by(data: object) -> None | TruncatedBy:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                truncated_by_type_0 = check_truncated_by(data)

                return truncated_by_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | TruncatedBy, data)

        truncated_by = _parse_truncated_by(d.pop("truncated_by", None))

        turns = d.pop("turns")

        episode_view = cls(
            checkpoint_id=checkpoint_id,
            created_at=created_at,
            end_reason=end_reason,
            error=error,
            id=id,
            iteration=iteration,
            job_id=job_id,
            messages=messages,
            ordinal=ordinal,
            purpose=purpose,
            return_=return_,
            reward_status=reward_status,
            seed=seed,
            success=success,
            task=task,
            temperature=temperature,
            tools=tools,
            truncated_by=truncated_by,
            turns=turns,
        )

        episode_view.additional_properties = d
        return episode_view

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
