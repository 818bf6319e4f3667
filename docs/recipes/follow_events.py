"""follow_events.py: reads the events as they happen, without a webhook. What was read is kept in
cursor.txt; started again, it goes on from there. At first it begins with what happens from now on."""

import os
import pathlib
import sys

from client import said
from muster_api.api.events import list_events
from muster_api.models import CodedRetryableProblem, EventPage
from react import muster, react

kept = pathlib.Path("cursor.txt")


def keep(cursor: str) -> str:
    """Replaces cursor.txt as a whole, so that a crash leaves the old one or the new one."""
    new = pathlib.Path("cursor.new")
    new.write_text(cursor)
    os.replace(new, kept)
    return cursor


after = kept.read_text() if kept.exists() else "latest"
while True:
    wait = 0 if after == "latest" else 30  # seconds; the first answer is there to get a cursor
    page = list_events.sync(client=muster, after=after, wait=wait, limit=100)
    if isinstance(page, CodedRetryableProblem) and page.status == 410 and page.oldest:
        # Events are missing: the cursor is too old, or the database was restored. Read here what you
        # keep of the devices again. Then go on with the oldest event that there is.
        print("some events are gone:", said(page), file=sys.stderr, flush=True)
        after = keep(page.oldest)
        continue
    if not isinstance(page, EventPage):
        sys.exit("cannot read the events: " + said(page))
    for event in page.events:
        react(event.to_dict())
    after = keep(page.next_)  # after the work: a crash before this line repeats it
