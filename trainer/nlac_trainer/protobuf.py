"""Passes and their results in protobuf, as the Tinker SDK 0.38 sends and reads them (package `tinker_public`).

The messages are described here, so that nothing is generated at build time. Arrays are little-endian bytes. Fields that
are not described, such as provenance spans, are skipped.
"""

from __future__ import annotations

import struct
from typing import Any

import torch
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

CONTENT_TYPE = "application/x-protobuf"

DTYPES = {1: torch.float32, 2: torch.int64, 3: torch.int32, 4: torch.bfloat16}
FLOAT32 = 1

_TYPES = {"double": 1, "int64": 3, "int32": 5, "bool": 8, "string": 9, "bytes": 12}
_MESSAGES = {
    "ForwardBackwardRequest": [
        "1 model_id string", "2 seq_id int32", "3 data Datum[]", "4 loss_fn string",
        "5 loss_fn_config map double", "6 forward_only bool", "7 loss_fn_config_v2 map Setting",
    ],
    "Setting": ["1 number double in value", "2 text string in value"],
    "Datum": ["1 model_input Chunk[]", "2 loss_fn_inputs map Tensor"],
    "Chunk": ["1 encoded_text Text in chunk", "2 image Opaque in chunk", "3 dmel Opaque in chunk"],
    "Text": ["1 tokens bytes"],
    "Opaque": [],
    "Tensor": ["1 dense bytes in encoding", "2 sparse_csr Opaque in encoding", "3 dtype int32"],
    "ForwardBackwardOutput": ["1 loss_fn_output_type string", "2 loss_fn_outputs Record[]", "3 metrics map double"],
    "Record": ["1 type_tag string", "2 fields map Batched", "3 num_datums int64"],
    "Batched": ["1 data bytes", "2 offsets bytes", "3 dtype int32"],
}  # fmt: skip


def _describe(message: descriptor_pb2.DescriptorProto, text: str) -> None:
    """Adds a field: its number, name and type, and `map` or `in ONEOF` where it belongs to one."""
    number, name, *words = text.split()
    field = message.field.add(number=int(number), name=name, label=1)
    kind = words[-1] if words[0] == "map" else words[0]
    if words[0] == "map":
        entry = message.nested_type.add(name=f"{name}_entry".title().replace("_", ""))
        entry.options.map_entry = True
        _describe(entry, "1 key string")
        _describe(entry, f"2 value {kind}")
        kind, field.label = f"{message.name}.{entry.name}", 3
    elif kind.endswith("[]"):
        kind, field.label = kind.removesuffix("[]"), 3
    elif words[1:2] == ["in"]:
        if words[2] not in [one.name for one in message.oneof_decl]:
            message.oneof_decl.add(name=words[2])
        field.oneof_index = [one.name for one in message.oneof_decl].index(words[2])
    field.type = _TYPES.get(kind, 11)
    if kind not in _TYPES:
        field.type_name = f".tinker_public.{kind}"


def _classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="tinker_public.proto", package="tinker_public", syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field in fields:
            _describe(message, field)
    # A pool of its own: the SDK may be imported in the same process.
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    described = {name: pool.FindMessageTypeByName(f"tinker_public.{name}") for name in _MESSAGES}
    return {name: message_factory.GetMessageClass(one) for name, one in described.items()}


CLASSES = _classes()


def numbers(data: bytes, dtype: int, name: str) -> list[Any]:
    """The elements of an array.

    Raises:
        ValueError: an unknown type, or bytes that are not whole elements.
    """
    if dtype not in DTYPES:
        raise ValueError(f"{name}: the dtype is missing or unknown")
    if len(data) % DTYPES[dtype].itemsize:
        raise ValueError(f"{name}: {len(data)} bytes are not elements of {DTYPES[dtype].itemsize} bytes each")
    return torch.frombuffer(bytearray(data), dtype=DTYPES[dtype]).tolist() if data else []


def _tensor(name: str, tensor: Any) -> dict[str, Any]:
    if tensor.HasField("sparse_csr"):
        raise ValueError(f"{name}: sparse arrays are not supported; send a dense array")
    return {"data": numbers(tensor.dense, tensor.dtype, name)}


def _chunk(chunk: Any) -> dict[str, Any]:
    if not chunk.HasField("encoded_text"):
        raise ValueError("model_input takes encoded_text chunks only")
    return {"type": "encoded_text", "tokens": numbers(chunk.encoded_text.tokens, 3, "tokens")}


def _setting(name: str, setting: Any) -> float:
    if not setting.HasField("number"):
        raise ValueError(f"loss_fn_config {name}: send a number")
    return setting.number


def read(body: bytes) -> tuple[dict[str, Any], dict[str, Any], bool]:
    """A `ForwardBackwardRequest`: model and number, what is learned as JSON has it, and whether only outputs are wanted.

    Raises:
        ValueError: it is no such message, or holds what is not supported.
    """
    try:
        message = CLASSES["ForwardBackwardRequest"].FromString(body)
    except DecodeError:
        raise ValueError("the body is no ForwardBackwardRequest in protobuf") from None
    data = []
    for index, datum in enumerate(message.data):
        try:
            chunks = [_chunk(chunk) for chunk in datum.model_input]
            inputs = {name: _tensor(name, tensor) for name, tensor in datum.loss_fn_inputs.items()}
        except ValueError as error:
            raise ValueError(f"datum {index}: {error}") from None
        data.append({"model_input": {"chunks": chunks}, "loss_fn_inputs": inputs})
    settings = {name: _setting(name, value) for name, value in message.loss_fn_config_v2.items()}
    settings = settings or dict(message.loss_fn_config)
    given = {"data": data, "loss_fn": message.loss_fn, "loss_fn_config": settings or None}
    return {"model_id": message.model_id, "seq_id": message.seq_id or None}, given, message.forward_only


def write(result: dict[str, Any]) -> bytes:
    """The result of a pass as a `ForwardBackwardOutput`."""
    message = CLASSES["ForwardBackwardOutput"](loss_fn_output_type=result["loss_fn_output_type"])
    message.metrics.update(result["metrics"])
    outputs = result["loss_fn_outputs"]
    record = message.loss_fn_outputs.add(type_tag=result["loss_fn_output_type"], num_datums=len(outputs))
    # All data of a request are of one model, so they have the same fields.
    for name in outputs[0] if outputs else ():
        rows = [output[name]["data"] for output in outputs]
        ends = [0]
        for row in rows:
            ends.append(ends[-1] + 4 * len(row))
        field = record.fields[name]
        field.dtype = FLOAT32
        field.data = b"".join(struct.pack(f"<{len(row)}f", *row) for row in rows)
        field.offsets = struct.pack(f"<{len(ends)}q", *ends)
    return message.SerializeToString()
