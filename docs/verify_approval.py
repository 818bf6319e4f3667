#!/usr/bin/env python3
"""Checks a file of `muster approval export`: verify_approval.py FILE [KEYS]

KEYS is a file of `muster approval keys`. Exit code 0: a trusted key signed the file, and
the service accepted the decision; 1: a byte was changed, or a key is not trusted; 2: the
file is whole, but no KEYS were given, or the service has not countersigned it. It needs
the package `cryptography`, and shares no code with muster.
"""
import base64, hashlib, json, sys
from urllib.parse import urlsplit
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, utils

P256 = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551  # its order


def require(condition, why):
    if not condition:
        raise ValueError(why)


def once(pairs):
    """An object in which no name occurs twice."""
    names = [name for name, _ in pairs]
    require(len(set(names)) == len(names), "a member occurs twice")
    return dict(pairs)


def refuse(text):
    raise ValueError("a number is not as these files have them: " + text)


def read(text):
    """JSON as these files have it: no name twice, and no numbers but integers."""
    return json.loads(text, object_pairs_hook=once, parse_float=refuse, parse_constant=refuse)


HEAD = {"domain": str, "company": str, "subject": str, "decision": str, "at": str, "expires": str, "confirmation": str,
        "reason": str, "approver": {"id": str, "name": str}}
MOVED = [{"setting": str, "from": str, "to": str}]
POLICY = {"id": str, "name": str, "version": int, "sha256": str}
DOCUMENTS = {
    "muster/approval/1": HEAD | {
        "kind": str, "policy": POLICY, "result": str, "baseVersion": int, "changes": MOVED, "documentSha256": str, "impact": str,
        "devices": int, "warnings": [str], "caller": {"kind": str, "id": str,
            "prefix": str, "client": str, "user": {"id": str, "name": str}}},
    "muster/authorization/1": HEAD | {
        "command": str, "arguments": str, "irreversible": bool, "useSeconds": int,
        "device": {"id": str, "name": str, "enrollment": int, "serialNumber": str, "model": str, "policy": POLICY, "user": str,
                   "userEmail": str, "lastContact": str, "lost": bool},
        "policies": {"from": POLICY, "to": POLICY, "changes": MOVED, "unnamed": [str], "warnings": [str], "impact": str},
        "caller": {"kind": str, "id": str, "prefix": str, "name": str, "user": str, "userName": str}},
    "muster/loosening/1": HEAD | {"control": str, "before": str, "after": str, "askedBy": {"id": str, "name": str}, "askedAt": str},
}
TRUST = {"format": str, "company": str, "origin": str, "rpId": str, "service": [str],
         "keys": [{"credentialId": str, "publicKey": str, "user": {"id": str, "name": str}, "email": str, "rights": [str], "added": str}]}


def strict(value, form):
    """Every member of value is one of form, and of its type."""
    if isinstance(form, dict):
        require(isinstance(value, dict) and set(value) <= set(form), "a member is unknown, or none")
        for name in value:
            strict(value[name], form[name])
    elif isinstance(form, list):
        require(isinstance(value, list), "a list is missing")
        for one in value:
            strict(one, form[0])
    else:
        require(type(value) is form, "a member is of another type")
        require(form is not int or abs(value) < 1 << 53, "a number is too large")


def canonical(value):
    """RFC 8785, as far as these files use it: the names of members are ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(text):
    data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    require(encode(data) == text, "a part is not base64url without padding")
    return data


def check_signature(key_text, message, signature):
    key = serialization.load_der_public_key(key_text)
    again = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    require(again == key_text, "the public key is written in an unusual form")
    if isinstance(key, ec.EllipticCurvePublicKey):
        require(key.curve.name == "secp256r1", "the curve is not P-256")
        r, s = utils.decode_dss_signature(signature)
        require(utils.encode_dss_signature(r, s) == signature and 0 < s <= P256 // 2, "the signature is in another form")
        key.verify(signature, message, ec.ECDSA(hashes.SHA256()))
    elif isinstance(key, rsa.RSAPublicKey):
        require(key.key_size >= 2048, "the key is too short")
        key.verify(signature, message, padding.PKCS1v15(), hashes.SHA256())
    else:
        require(isinstance(key, ed25519.Ed25519PublicKey), "the kind of key is unknown")
        key.verify(signature, message)


def check_countersignature(data, trust):
    """The service's key signed all of the file but its own signature."""
    bare = dict(data["countersignature"])
    signature = decode(bare.pop("signature"))
    require(bare["key"] in trust["service"], "the service's key is not trusted")
    statement = b"muster decision 2\n" + canonical(data | {"countersignature": bare})
    ed25519.Ed25519PublicKey.from_public_bytes(decode(bare["key"])).verify(signature, statement)


def verify(file, trust=None):
    """Returns the document, and whether it is proved that the service accepted it; or raises an error."""
    data = read(file.decode())
    require(canonical(data) + b"\n" == file, "the file is not as it was exported")
    names = {"authenticatorData", "clientDataJSON", "credentialId", "publicKey", "signature"}
    strict(data, {"format": str, "document": DOCUMENTS.get(data["document"]["domain"], {}), "assertion": dict.fromkeys(names, str),
                  "countersignature": {"at": str, "rights": [str], "key": str, "signature": str}})
    accepted = "countersignature" in data
    require(data["format"] == "muster/signed/2" or data["format"] == "muster/signed/1" and not accepted, "the file is no approval")
    require(set(data["assertion"]) == names, "the file is no approval")
    part = {name: decode(text) for name, text in data["assertion"].items()}
    document, client, head = data["document"], read(part["clientDataJSON"].decode()), part["authenticatorData"]
    require(document["domain"] in DOCUMENTS, "the document is of no known kind")
    require(document["decision"] in ("APPROVE", "DECLINE"), "the document has no decision")
    origin, host = client["origin"], urlsplit(client["origin"]).hostname
    if trust is not None:
        strict(trust, TRUST)
        require(trust["format"] == "muster/approval-keys/2", "the keys are in another format: write them again")
        origin, host = trust["origin"], trust["rpId"]
    require(client["type"] == "webauthn.get" and client["origin"] == origin, "signed at another address")
    require(client.get("crossOrigin") is not True and "topOrigin" not in client, "signed inside another page")
    challenge = hashlib.sha256(canonical(document)).digest()
    require(client["challenge"] == encode(challenge), "another document was signed")
    require(len(head) >= 37 and head[:32] == hashlib.sha256(host.encode()).digest(), "signed for another host")
    require(head[32] & 5 == 5, "the passkey did not verify its user")
    require(head[32] & 0xC0 or len(head) == 37, "the authenticator's data are too long")
    check_signature(part["publicKey"], head + hashlib.sha256(part["clientDataJSON"]).digest(), part["signature"])
    if trust is not None:
        require(document["company"] == trust["company"], "another company's keys")
        key = (data["assertion"]["credentialId"], data["assertion"]["publicKey"], document["approver"]["id"])
        known = {(k["credentialId"], k["publicKey"], k["user"]["id"]) for k in trust["keys"]}
        require(key in known, "the key is not trusted")
        if accepted:
            check_countersignature(data, trust)
    return document, accepted and trust is not None


def main(args):
    try:
        trust = read(open(args[2], encoding="utf-8").read()) if len(args) > 2 else None
        document, accepted = verify(open(args[1], "rb").read(), trust)
    except (ValueError, KeyError, TypeError, AttributeError, InvalidSignature) as error:
        print("does not verify:", error or "the signature is wrong", file=sys.stderr)
        return 1
    print(json.dumps(document, indent=2, ensure_ascii=False))
    if trust is None:
        print("integrity only: whose key signed it is not known", file=sys.stderr)
    elif not accepted:
        print("signed, acceptance not proved", file=sys.stderr)
    return 0 if accepted else 2


if __name__ == "__main__":
    sys.exit(main(sys.argv))
