"""The methods of Blender's services on a channel, as `blender.proto` declares them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import grpc
from google.protobuf.message_factory import GetMessageClass

from blender.proto.blender.v1 import blender_pb2 as pb


def stub(channel: grpc.Channel, service: str) -> SimpleNamespace:
    """The methods of `BlendConfigs` or `BlendData`, each a callable from a message to its answer."""
    methods = pb.DESCRIPTOR.services_by_name[service].methods
    return SimpleNamespace(**{method.name: _callable(channel, method) for method in methods})


def _callable(channel: grpc.Channel, method: Any) -> Any:
    kind = channel.unary_stream if method.server_streaming else channel.unary_unary
    return kind(
        f"/{method.containing_service.full_name}/{method.name}",
        request_serializer=GetMessageClass(method.input_type).SerializeToString,
        response_deserializer=GetMessageClass(method.output_type).FromString,
    )
