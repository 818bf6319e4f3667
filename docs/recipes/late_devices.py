"""late_devices.py RUN HOURS TEXT: sends a message to every managed device that was not
seen for HOURS. RUN names this run: started again with the same name within 24 hours, no device
gets the message twice. Exits with 1 if a device did not take it."""

import datetime
import sys

from client import connect, said
from muster_api.api.assets import list_assets
from muster_api.api.device_commands import send_message
from muster_api.models import AssetListed, AssetListedPage, CommandResult, ListAssetsSort, SendMessageRequest

if len(sys.argv) != 4:
    sys.exit(__doc__)
run, hours, text = sys.argv[1:]
muster = connect()
seen_before = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(hours=float(hours))

# All pages first: by createdAt no device changes its place while we read.
late: list[AssetListed] = []
number, last = 0, False
while not last:
    page = list_assets.sync(
        client=muster, seen_before=seen_before, receives_messages=True,
        sort=ListAssetsSort.CREATEDATASC, size=100, page=number,
    )
    if not isinstance(page, AssetListedPage):
        sys.exit("cannot list the devices: " + said(page))
    late += page.content
    number, last = number + 1, page.last

complete = True
for device in late:
    answer = send_message.sync_detailed(
        device.path_name, client=muster, idempotency_key=f"{run}-{device.path_name}",
        body=SendMessageRequest(title="Please connect", body=text),
    )
    # 202 is UNCONFIRMED: it may have arrived. Read the history; do not send it again.
    took = isinstance(answer.parsed, CommandResult)
    complete = complete and took
    result = answer.parsed.status.value if isinstance(answer.parsed, CommandResult) else said(answer.parsed)
    print(device.path_name, device.identification, int(answer.status_code), result, sep="\t", flush=True)
sys.exit(0 if complete else 1)
