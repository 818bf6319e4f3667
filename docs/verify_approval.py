#!/usr/bin/env python3
"""Checks a file of `muster approval export`: verify_approval.py FILE [KEYS]

KEYS is a file of `muster approval keys`. Exit code 0: a trusted key signed the file;
1: a byte was changed, or the key is not trusted; 2: the file is whole, but no KEYS
were given. It needs the package `cryptography`, and shares no code with muster.
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


def verify(file, trust=None):
    """Returns the document, or raises an error."""
    data = json.loads(file.decode())
    require(canonical(data) + b"\n" == file, "the file is not as it was exported")
    require(set(data) == {"assertion", "document", "format"} and data["format"] == "muster/signed/1", "the file is no approval")
    names = {"authenticatorData", "clientDataJSON", "credentialId", "publicKey", "signature"}
    require(set(data["assertion"]) == names, "the file is no approval")
    part = {name: decode(text) for name, text in data["assertion"].items()}
    document, client, head = data["document"], json.loads(part["clientDataJSON"].decode()), part["authenticatorData"]
    require(document["domain"] in ("muster/approval/1", "muster/authorization/1"), "the document is of no known kind")
    require(document["decision"] in ("APPROVE", "DECLINE"), "the document has no decision")
    origin, host = client["origin"], urlsplit(client["origin"]).hostname
    if trust is not None:
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
    return document


def main(args):
    trust = json.load(open(args[2], encoding="utf-8")) if len(args) > 2 else None
    try:
        document = verify(open(args[1], "rb").read(), trust)
    except (ValueError, KeyError, TypeError, AttributeError, InvalidSignature) as error:
        print("does not verify:", error or "the signature is wrong", file=sys.stderr)
        return 1
    print(json.dumps(document, indent=2, ensure_ascii=False))
    if trust is None:
        print("integrity only: whose key signed it is not known", file=sys.stderr)
    return 0 if trust is not None else 2


if __name__ == "__main__":
    sys.exit(main(sys.argv))
