"""compliance_csv.py: writes a line for each managed device as CSV, with its policy, whether
it follows it, its patch level and when it was last seen."""

import csv
import sys

from client import connect, said
from muster_api.api.assets import list_assets
from muster_api.api.policies import list_policies
from muster_api.models import AssetDeviceView, AssetListedPage, ListAssetsSort, PolicySummaryPage


def cell(value: object) -> str:
    """Returns a value for CSV. Devices choose their names: a value that a spreadsheet
    would take for a formula gets an apostrophe."""
    text = "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    return "'" + text if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


muster = connect()
current: dict[str, int] = {}  # version of each policy
number, last = 0, False
while not last:
    policies = list_policies.sync(client=muster, size=100, page=number)
    if not isinstance(policies, PolicySummaryPage):
        sys.exit("cannot list the policies: " + said(policies))
    current |= {policy.path_name: policy.version for policy in policies.content}
    number, last = number + 1, policies.last

print("asset,name,serialNumber,user,policy,compliant,policyUpToDate,securityPatchLevel,lastSeenAt")
lines = csv.writer(sys.stdout, quoting=csv.QUOTE_ALL, lineterminator="\n")
number, last = 0, False
while not last:
    page = list_assets.sync(client=muster, sort=ListAssetsSort.CREATEDATASC, size=100, page=number)
    if not isinstance(page, AssetListedPage):
        sys.exit("cannot list the devices: " + said(page))
    for asset in page.content:
        device = asset.managed_device
        if not isinstance(device, AssetDeviceView):
            continue  # not enrolled
        report = device.status_report.to_dict() if device.status_report else {}
        facts = asset.specifications.to_dict() if asset.specifications else {}
        custom = asset.custom_data.additional_properties if asset.custom_data else {}
        up_to_date = device.policy_version_applied == current.get(device.policy_id or "")
        seen = device.last_seen_at.isoformat() if device.last_seen_at else None
        lines.writerow([cell(value) for value in (
            asset.path_name, asset.identification, facts.get("serialNumber"), custom.get("user"), device.policy_name,
            report.get("policyCompliant"), up_to_date, facts.get("securityPatchLevel"), seen)])
    number, last = number + 1, page.last
