"""Google's Python client against the emulator, with a service account and a long GET."""
import json
import os
import time
import urllib.request

from google.oauth2 import service_account
from googleapiclient.discovery import build
from googleapiclient.errors import HttpError

EMULATOR = os.environ["EMULATOR"]


def control(method, path, body=None):
    request = urllib.request.Request(EMULATOR + "/emulator/v1" + path, method=method, headers={"Content-Type": "application/json"},
                                     data=None if body is None else json.dumps(body).encode())
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def ok(step):
    print("ok", step, flush=True)


credentials = service_account.Credentials.from_service_account_info(
    control("POST", "/service-accounts"), scopes=["https://www.googleapis.com/auth/androidmanagement"])
control("PATCH", "/settings", {"requireAuthorization": True})
enterprises = build("androidmanagement", "v1", credentials=credentials, client_options={"api_endpoint": EMULATOR}).enterprises()

enterprise = enterprises.create(projectId="muster", agreementAccepted=True, body={"enterpriseDisplayName": "Acme"}).execute()["name"]
assert enterprise in [e["name"] for e in enterprises.list(projectId="muster").execute()["enterprises"]]
assert enterprises.patch(name=enterprise, updateMask="primaryColor", body={"primaryColor": 255}).execute()["primaryColor"] == 255
ok("enterprise")

with open("policy.json") as file:
    rich = json.load(file)
policies = enterprises.policies()
policy = policies.patch(name=enterprise + "/policies/rich", body=rich).execute()
assert {k: v for k, v in policies.get(name=policy["name"]).execute().items() if k not in ("name", "version")} == rich
assert policies.patch(name=policy["name"], updateMask="smsDisabled", body={}).execute()["version"] == "2"
assert len(policies.list(parent=enterprise, fields=",".join(["policies/name"] * 300)).execute()["policies"]) == 1  # a POST for a GET
try:
    policies.patch(name=policy["name"], body={"cameraDisbled": True}).execute()
    raise AssertionError("an unknown member was taken")
except HttpError as error:
    assert error.status_code == 400 and "cameraDisbled" in str(error), error
ok("policies")

tokens = enterprises.enrollmentTokens()
token = tokens.create(parent=enterprise, body={"policyName": policy["name"], "duration": "315576000000s"}).execute()
assert token["duration"] == "315576000000s" and len(tokens.list(parent=enterprise).execute()["enrollmentTokens"]) == 1
ok("tokens")

devices = enterprises.devices()
control("POST", "/devices", {"enrollmentToken": token["value"], "count": 3})
page = devices.list(parent=enterprise, pageSize=2)
found = []
while page is not None:
    answer = page.execute()
    found += answer["devices"]
    page = devices.list_next(page, answer)
assert len(found) == 3 and devices.get(name=found[0]["name"]).execute()["policyName"] == policy["name"]
ok("devices")

operation = devices.issueCommand(name=found[0]["name"], body={"type": "LOCK", "duration": "3600s"}).execute()
for _ in range(100):
    operation = devices.operations().get(name=operation["name"]).execute()
    if operation.get("done"):
        break
    time.sleep(0.1)
assert operation["done"] and operation["metadata"]["type"] == "LOCK", operation
assert len(devices.operations().list(name=found[0]["name"] + "/operations").execute()["operations"]) == 1
ok("commands")

devices.delete(name=found[0]["name"], wipeDataFlags="WIPE_EXTERNAL_STORAGE").execute()
try:
    devices.get(name=found[0]["name"]).execute()
    raise AssertionError("the device is still there")
except HttpError as error:
    assert error.status_code == 404, error
tokens.delete(name=token["name"]).execute()
enterprises.delete(name=enterprise).execute()
ok("deletes")
