package ops

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"math/big"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agentserver"
)

// Signers are the keys that sign what devices obey, by algorithm.
func (k *Keys) Signers() (ed25519, es256 agentserver.Signer, err error) {
	if ed25519, err = signerOf(k.signing, signingKey.ed25519); err != nil {
		return ed25519, es256, err
	}
	es256, err = signerOf(k.signing, signingKey.es256)
	return ed25519, es256, err
}

// signerOf makes the signer of one algorithm: the key that signs what devices
// obey, with those before it.
func signerOf(keys []signingKey, private func(signingKey) (any, error)) (agentserver.Signer, error) {
	var all []agentserver.Signer
	for _, k := range keys {
		key, err := private(k)
		if err != nil {
			return agentserver.Signer{}, err
		}
		one, err := oneSigner(key, k.made)
		if err != nil {
			return agentserver.Signer{}, err
		}
		all = append(all, one)
	}
	all[0].Former = all[1:]
	return all[0], nil
}

// oneSigner makes the signer of one key. Its id is derived, so that the same key
// has the same id on every replica.
func oneSigner(private any, made time.Time) (agentserver.Signer, error) {
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return agentserver.Signer{}, err
	}
	key, err := protocol.ParsePrivateKey(raw)
	if err != nil {
		return agentserver.Signer{}, err
	}
	public, err := key.Public()
	if err != nil {
		return agentserver.Signer{}, err
	}
	sum := sha256.Sum256([]byte(public.SPKI))
	return agentserver.Signer{Key: key, ID: hex.EncodeToString(sum[:8]), Made: made}, nil
}

func (k signingKey) ed25519() (any, error) { return k.key, nil }

// es256 is the P-256 key that belongs to the Ed25519 one. It comes of the same
// secret, one way (HKDF, then FIPS 186-5 A.2.1), and is not stored: key files of
// every age have one, and all replicas have the same without a new file.
func (k signingKey) es256() (any, error) {
	curve := elliptic.P256()
	order := curve.Params().N
	wide, err := hkdf.Key(sha256.New, k.key.Seed(), nil, "muster command key es256", curve.Params().BitSize/8+16)
	if err != nil {
		return nil, err
	}
	one := big.NewInt(1)
	scalar := new(big.Int).SetBytes(wide)
	scalar.Mod(scalar, new(big.Int).Sub(order, one)).Add(scalar, one)
	return ecdsa.ParseRawPrivateKey(curve, scalar.FillBytes(make([]byte, curve.Params().BitSize/8)))
}
