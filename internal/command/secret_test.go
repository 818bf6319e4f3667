package command_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/outcome"
	"github.com/musterhq/muster/test/expect"
)

// What a channel says is shown without the password of the command. The reason for a refusal is shown only if the device gave it.
func TestReceipt_WithoutSecret(t *testing.T) {
	t.Parallel()
	const password, reason = "hunter22", "too short"
	body := command.PasswordBody{NewPassword: password}
	for name, c := range map[string]struct {
		receipt command.Receipt
		shown   bool // the reason
	}{
		"refused by the platform":                  {command.Receipt{Code: outcome.Refused, Outcome: reason}, false},
		"refused by the device":                    {command.Receipt{Code: outcome.Refused, Ref: "r", Outcome: reason}, true},
		"refused by the device, with the password": {command.Receipt{Code: outcome.Refused, Ref: "r", Outcome: reason + password}, false},
		"not known":                                   {command.Receipt{Code: outcome.Unknown, Outcome: reason}, true},
		"not known, with the password":                {command.Receipt{Code: outcome.Unknown, Outcome: reason + password}, true},
		"not known, with the password in the error":   {command.Receipt{Code: outcome.Unknown, Cause: errors.New(password)}, false},
		"not known, with the password for the caller": {command.Receipt{Code: outcome.Unknown, Detail: password + reason}, true},
	} {
		got := c.receipt.WithoutSecret(body)
		all := got.Outcome + got.Detail
		if got.Cause != nil {
			all += got.Cause.Error()
		}
		expect.Equal(t, name, expect.Values{"the reason shows": {strings.Contains(all, reason), c.shown},
			"the password shows": {strings.Contains(all, password), false}, "code": {got.Code, c.receipt.Code}})
		for other, body := range map[string]any{"of another command": nil, "with no password": command.PasswordBody{}} {
			expect.Equal(t, name+", "+other, expect.Values{"outcome": {c.receipt.WithoutSecret(body).Outcome, c.receipt.Outcome}})
		}
	}
	quotes := command.Receipt{Code: outcome.Unknown, Cause: quoting{errors.New("it was H U N T E R 2 2")}}.WithoutSecret(body)
	expect.Equal(t, "an error that quotes in another form", expect.Values{"cause": {quotes.Cause.Error(), "it failed"}})
}

// quoting is an error that may quote the password in any form.
type quoting struct{ error }

func (quoting) WithoutText() error { return errors.New("it failed") }
