package service

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"math/big"
	"net/http"
	"time"

	agentdevice "github.com/musterhq/muster/internal/agent/device"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agentserver"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/surface/agentapi"
)

// agents mounts the agents' door and makes the link the channel of agent
// devices.
func (s *Service) agents(mux *http.ServeMux, commands *command.Service, observer *enrollment.Service) (*agentserver.Server, error) {
	signer, es256, err := s.keys.signers()
	if err != nil {
		return nil, err
	}
	app, err := openApp(s.config)
	if err != nil {
		return nil, err
	}
	link := &agentserver.Server{Store: s.db, Enroller: s.db, Deliveries: s.db, Companions: s.db, Directory: s.db, Observer: observer, Commands: commands, Waker: s.db, Signer: signer, ES256: es256,
		PublicURL: s.public, Pins: s.pins, App: inCodes(app, s.config), Now: s.options.Now, Log: s.options.Logger}
	hub := agentapi.NewHub(s.options.Now, s.shares.Streams)
	s.metrics.Streams(hub.Count, s.shares.Streams)
	stopWake, stopEnd := s.db.Listen(agentdevice.WakeTopic, hub.Wake), s.db.Listen(agentdevice.EndTopic, hub.End)
	s.onClose(func() error {
		stopWake()
		stopEnd()
		hub.Close()
		return nil
	})
	door := &agentapi.API{Service: link, Hub: hub, Log: s.options.Logger}
	mux.Handle(protocol.Base+"/", door.Handler())
	if app == nil {
		mux.Handle("GET "+agentserver.AppPath, agentapi.NoApp(s.options.Logger))
	} else {
		mux.Handle("GET "+agentserver.AppPath, agentapi.App(app.Data))
		s.options.Logger.Info("serving the Android app", "signer", app.Signer, "checksum", app.Checksum)
	}
	commands.Channels[asset.Agent] = link
	s.loops = append(s.loops, s.every("agent sweeper", agentserver.SweepEvery, link.Sweep))
	s.link = link
	return link, nil
}

// Agents is the link to devices with our own agent; it issues their tokens.
func (s *Service) Agents() *agentserver.Server { return s.link }

// signers are the keys that sign what devices obey, by algorithm.
func (k *Keys) signers() (ed25519, es256 agentserver.Signer, err error) {
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
