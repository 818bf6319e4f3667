// Google's Node client against the emulator.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { setTimeout } from "node:timers/promises";
import { androidmanagement } from "@googleapis/androidmanagement";

const emulator = process.env.EMULATOR;
const { enterprises } = androidmanagement({ version: "v1", rootUrl: emulator + "/" });
const ok = (step) => console.log("ok", step);

const control = async (method, path, body) => {
	const answer = await fetch(`${emulator}/emulator/v1${path}`, { method, headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
	assert.equal(answer.status, 200);
	return answer.json();
};

const { name: enterprise } = (await enterprises.create({ projectId: "muster", agreementAccepted: true, requestBody: { enterpriseDisplayName: "Acme" } })).data;
assert.equal((await enterprises.get({ name: enterprise })).data.enterpriseDisplayName, "Acme");
ok("enterprise");

const rich = JSON.parse(await readFile("policy.json", "utf8"));
const policy = `${enterprise}/policies/rich`;
await enterprises.policies.patch({ name: policy, requestBody: rich });
const { name: _, version, ...stored } = (await enterprises.policies.get({ name: policy })).data;
assert.deepEqual(stored, rich);
assert.equal(version, "1");
assert.equal((await enterprises.policies.list({ parent: enterprise, pageSize: 1, prettyPrint: false })).data.policies.length, 1);
await assert.rejects(enterprises.policies.patch({ name: policy, requestBody: { cameraDisbled: true } }), { code: 400 });
ok("policies");

const token = (await enterprises.enrollmentTokens.create({ parent: enterprise, requestBody: { policyName: policy, duration: "86400s" } })).data;
assert.equal((await enterprises.enrollmentTokens.get({ name: token.name })).data.value, token.value);
ok("tokens");

await control("POST", "/devices", { enrollmentToken: token.qrCode, count: 2 });
const devices = (await enterprises.devices.list({ parent: enterprise, fields: "devices(name,state)" })).data.devices;
assert.equal(devices.length, 2);
await enterprises.devices.patch({ name: devices[1].name, updateMask: "state", requestBody: { state: "DISABLED" } });
ok("devices");

let operation = (await enterprises.devices.issueCommand({ name: devices[0].name, requestBody: { type: "REBOOT" } })).data;
for (let i = 0; i < 100 && !operation.done; i++) {
	await setTimeout(100);
	operation = (await enterprises.devices.operations.get({ name: operation.name })).data;
}
assert.ok(operation.done);
await control("PATCH", `/devices/${devices[0].name.split("/").pop()}`, { online: false });
operation = (await enterprises.devices.issueCommand({ name: devices[0].name, requestBody: { type: "LOCK" } })).data;
await enterprises.devices.operations.cancel({ name: operation.name });
ok("commands");

await enterprises.devices.delete({ name: devices[0].name });
await assert.rejects(enterprises.devices.get({ name: devices[0].name }), { code: 404 });
ok("deletes");
