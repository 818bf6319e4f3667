package service

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"net/http"

	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/agentlink"
	"github.com/musterhq/muster/internal/agentproto"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/enrolment"
	"github.com/musterhq/muster/internal/surface/device"
)

// agents mounts the agents' door and makes the link the channel of agent
// devices.
func (s *Service) agents(mux *http.ServeMux, commands *command.Service, observer *enrolment.Service) (*agentlink.Link, error) {
	signer, err := s.keys.signer()
	if err != nil {
		return nil, err
	}
	link := &agentlink.Link{Store: s.db, Enroller: s.db, Deliveries: s.db, Companions: s.db, Directory: s.db, Observer: observer, Commands: commands, Waker: s.db, Signer: signer,
		PublicURL: s.public, Pins: s.pins, Now: s.options.Now, Log: s.options.Logger}
	hub := device.NewHub(s.options.Now, s.shares.Streams)
	s.metrics.Streams(hub.Count, s.shares.Streams)
	stopWake, stopEnd := s.db.Listen(agentlink.WakeTopic, hub.Wake), s.db.Listen(agentdevice.EndTopic, hub.End)
	s.onClose(func() error {
		stopWake()
		stopEnd()
		hub.Close()
		return nil
	})
	door := &device.Door{Link: link, Hub: hub, Log: s.options.Logger}
	mux.Handle(agentproto.Base+"/", door.Handler())
	mux.Handle("GET "+agentlink.AppPath, device.NoApp(s.options.Logger))
	commands.Channels[asset.Agent] = link
	s.loops = append(s.loops, s.every("agent sweeper", agentlink.SweepEvery, link.Sweep))
	s.link = link
	return link, nil
}

// Agents is the link to devices with our own agent; it issues their tokens.
func (s *Service) Agents() *agentlink.Link { return s.link }

// signer is the key that signs what devices obey, with those before it.
func (k *Keys) signer() (agentlink.Signer, error) {
	var all []agentlink.Signer
	for _, k := range k.signing {
		one, err := signerOf(k)
		if err != nil {
			return agentlink.Signer{}, err
		}
		all = append(all, one)
	}
	all[0].Former = all[1:]
	return all[0], nil
}

// signerOf makes the signer of one key. Its id is derived, so that the same key
// has the same id on every replica.
func signerOf(k signingKey) (agentlink.Signer, error) {
	raw, err := x509.MarshalPKCS8PrivateKey(k.key)
	if err != nil {
		return agentlink.Signer{}, err
	}
	key, err := agentproto.ParsePrivateKey(raw)
	if err != nil {
		return agentlink.Signer{}, err
	}
	public, err := key.Public()
	if err != nil {
		return agentlink.Signer{}, err
	}
	sum := sha256.Sum256([]byte(public.SPKI))
	return agentlink.Signer{Key: key, ID: hex.EncodeToString(sum[:8]), Made: k.made}, nil
}
