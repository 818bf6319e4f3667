"""What receive_events.py and follow_events.py do with an event. It may be called twice for the
same event, so it must not matter if it is."""

from typing import Any

from client import connect, said
from muster_api.api.assets import get_asset
from muster_api.models import AssetView

muster = connect()


def react(event: dict[str, Any]) -> None:
    """Reads a device that fell silent, and prints it. It raises if the device cannot be read."""
    asset_id = event["data"].get("assetId")
    if event["type"] != "device.silent" or not asset_id:
        return  # other types, and ones of later versions
    answer = get_asset.sync_detailed(asset_id, client=muster)
    if answer.status_code == 404:
        return  # it was deleted since
    device = answer.parsed
    if not isinstance(device, AssetView):
        raise RuntimeError("cannot read the device: " + said(device))
    print(device.path_name, device.identification, device.status.value, sep="\t", flush=True)
