package platform

import (
	"cmp"
	"errors"
	"strings"

	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/outcome"
	"github.com/musterhq/muster/internal/validate"
)

// receipt turns the result of a call into the answer to an order (contract 7.1).
// gone says that the vendor confirmed that it no longer knows the device. The
// history puts "not sent: " or "refused: " before an outcome.
func receipt(err error, gone bool) command.Receipt {
	r := command.Receipt{Code: outcome.Broken, Cause: err}
	f, ok := errors.AsType[*Failure](err)
	if !ok {
		r.Detail = "an unexpected error occurred, and it is not known whether the command reached the device:" +
			" do not send it again at once, look at the asset and at the command history"
		return r
	}
	switch f.Code {
	case outcome.NotSent:
		r.Code, r.Outcome = outcome.NotSent, why(f)
		r.Detail = "the command was not sent: " + r.Outcome + "; nothing reached the device, send it again"
	case outcome.Unknown:
		r.Code = outcome.Unknown
		r.Detail = "the platform did not confirm the command, so it is not known whether it reached the device:" +
			" do not send it again, look at the command history first"
		r.Outcome = "the platform did not confirm the command; it is not known whether the device received it"
	case outcome.Refused:
		r.Code, r.Outcome = outcome.Refused, orNoReason(f.Message)
		r.Detail = "the platform refused the command for this device: " + quoted(f.Message)
	case outcome.Throttled, outcome.Conflict:
		passing(&r, f.Code)
	case outcome.Missing, outcome.Denied:
		r = denied(err, gone)
	default: // the receipt stays as it began
	}
	return r
}

// why says why nothing was sent.
func why(f *Failure) string {
	return cmp.Or(f.Message, "the platform could not be reached")
}

func orNoReason(text string) string {
	return cmp.Or(strings.TrimRight(text, ". "), noReason)
}

const noReason = "it gave no reason"

// quotedWords bounds what an error repeats of the vendor's words, in characters.
const quotedWords = 160

// quoted is the vendor's words for the text of an error. The marks tell people
// and models where they begin and end, so they cannot occur inside.
func quoted(text string) string {
	text = strings.TrimRight(validate.Clean(marks.Replace(text), quotedWords), ". ")
	if text == "" {
		return noReason
	}
	return "“" + text + "”"
}

var marks = strings.NewReplacer("“", `"`, "”", `"`) //nolint:gochecknoglobals // a Replacer does not change

// passing answers for what will be different after a while.
func passing(r *command.Receipt, c outcome.Code) {
	r.Code = c
	if c == outcome.Throttled {
		r.Outcome = "the platform's rate limit is exceeded: retry later"
		r.Detail = "the command was not carried out: " + r.Outcome + "; send it again after a minute"
		return
	}
	r.Outcome = "the platform had a temporary conflict"
	r.Detail = "the command was not carried out: " + r.Outcome + "; send it again after a short while"
}

func denied(err error, gone bool) command.Receipt {
	if gone {
		return command.Receipt{
			Code: outcome.Gone, Cause: err,
			Detail:  "the platform no longer manages this device; the asset is now DELETED",
			Outcome: "the platform no longer manages this device",
		}
	}
	return command.Receipt{
		Code: outcome.Denied, Cause: err,
		Detail: "the platform refuses this service, or the company's enterprise: the company's platform set-up has a problem;" +
			" do not send the command again, contact your support",
		Outcome: "the platform refuses this service, or the company's enterprise",
	}
}

// unsure answers an order whose device the vendor did not find while it could
// not be asked for the enterprise: nothing was carried out, and whether the
// device ended is for the next attempt to tell.
func unsure(err, confirmed error) command.Receipt {
	return command.Receipt{
		Code: outcome.Missing, Cause: errors.Join(err, confirmed),
		Detail: "the command was not carried out: the platform did not find the device and could not say why;" +
			" send it again after a short while",
		Outcome: "the platform did not find the device and could not say why",
	}
}
