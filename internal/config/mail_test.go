package config_test

import (
	"testing"

	"github.com/musterhq/muster/internal/config"
)

func TestMail(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]config.Mail{
		"smtp://mail.test":             {Host: "mail.test:587", Name: "mail.test"},
		"smtps://u:p%40ss@mail.test":   {Host: "mail.test:465", Name: "mail.test", TLS: true, User: "u", Password: "p@ss"},
		"smtp://127.0.0.1:2525":        {Host: "127.0.0.1:2525", Name: "127.0.0.1", Loopback: true},
		"smtp://[::1]:25/":             {Host: "[::1]:25", Name: "::1", Loopback: true},
		"smtp://localhost":             {Host: "localhost:587", Name: "localhost", Loopback: true},
		"smtp://127.0.0.1.example.com": {Host: "127.0.0.1.example.com:587", Name: "127.0.0.1.example.com"},
	} {
		got, err := config.Service{SMTPURL: address, MailFrom: "Muster <muster@acme.test>"}.Mail()
		want.From.Name, want.From.Address = "Muster", "muster@acme.test"
		if err != nil || got != want || !got.On() {
			t.Errorf("%s is %+v, %v; want %+v", address, got, err, want)
		}
	}
	if got, err := (config.Service{}).Mail(); err != nil || got.On() {
		t.Errorf("without a server: %+v, %v", got, err)
	}
}
