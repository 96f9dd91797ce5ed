from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.chat_message import ChatMessage


T = TypeVar("T", bound="Ending")


@_attrs_define
class Ending:
    """How an episode ended."""

    messages: list[ChatMessage] | Unset = UNSET
    """ What the agent was told after its last action, where it would not call again: messages of `user` or `tool`.
    """
    reward: float | None | Unset = UNSET
    """ Reward of the last step. Without one it is awaited, and may come days later. """
    success: bool | None | Unset = UNSET
    """ Whether the task was solved, where that is known. """
    truncated: bool | Unset = UNSET
    """ Something that is not part of the task cut the episode: it has no end, and counts as not solved. """

    def to_dict(self) -> dict[str, Any]:
        messages: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.messages, Unset):
            messages = []
            for messages_item_data in self.messages:
                messages_item = messages_item_data.to_dict()
                messages.append(messages_item)

        reward: float | None | Unset
        if isinstance(self.reward, Unset):
            reward = UNSET
        else:
            reward = self.reward

        success: bool | None | Unset
        if isinstance(self.success, Unset):
            success = UNSET
        else:
            success = self.success

        truncated = self.truncated

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if messages is not UNSET:
            field_dict["messages"] = messages
        if reward is not UNSET:
            field_dict["reward"] = reward
        if success is not UNSET:
            field_dict["success"] = success
        if truncated is not UNSET:
            field_dict["truncated"] = truncated

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.chat_message import ChatMessage

        d = dict(src_dict)
        _messages = d.pop("messages", UNSET)
        messages: list[ChatMessage] | Unset = UNSET
        if _messages is not UNSET:
            messages = []
            for messages_item_data in _messages:
                messages_item = ChatMessage.from_dict(messages_item_data)

                messages.append(messages_item)

        def _parse_reward(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        reward = _parse_reward(d.pop("reward", UNSET))

        def _parse_success(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        success = _parse_success(d.pop("success", UNSET))

        truncated = d.pop("truncated", UNSET)

        ending = cls(
            messages=messages,
            reward=reward,
            success=success,
            truncated=truncated,
        )

        return ending
