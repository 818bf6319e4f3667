package webhooks

import (
	"net/http"
	"strconv"
	"time"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/surface/portal/frame"
	"github.com/musterhq/muster/internal/webhook"
)

// newForm is the form of a new webhook.
type newForm struct {
	URL     string
	All     bool // events of every type
	Chosen  []string
	Wrong   map[string]string
	Problem string
}

func (s *Section) newWebhook(v *frame.Visit) error { return s.showForm(v, http.StatusOK, newForm{}) }

// showForm shows the form: one form makes one webhook.
func (s *Section) showForm(v *frame.Visit, status int, f newForm) error {
	return v.ShowStatus(status, "New webhook", frame.SettingsPath, newPage(v, f))
}

func (s *Section) create(v *frame.Visit) error {
	f := newForm{URL: v.Form.Get("url"), All: v.Form.Get("all") == "true", Chosen: v.Form["event"]}
	if !f.All && len(f.Chosen) == 0 {
		f.Wrong = map[string]string{"events": "choose at least one type of event, or all"}
		return s.showForm(v, http.StatusUnprocessableEntity, f)
	}
	types := frame.Either(f.All, nil, f.Chosen)
	if answered, err := v.SentBefore(s.Steps, account.WebhookForm, frame.WebhooksPath,
		"look for the webhook in the list. Its secret is not shown again."); answered || err != nil {
		return err
	}
	w, secret, err := s.Service.Create(v.Context(), v.Company, f.URL, types)
	switch fault.CodeOf(err) {
	case "":
		return v.Show("The webhook's secret", frame.SettingsPath, secretPage(v, w, secret))
	case fault.InvalidArguments, fault.Refused:
		if f.Wrong = frame.Fields(err); len(f.Wrong) == 0 {
			f.Problem = frame.Sentence(fault.From(err).Detail)
		}
		return s.showForm(v, http.StatusUnprocessableEntity, f)
	default:
		return err
	}
}

// test sends a test while the person waits: at most webhook.CallTime.
func (s *Section) test(v *frame.Visit) error {
	id := v.PathValue("webhook")
	a, err := s.Service.Test(v.Context(), v.Company.ID, id)
	if err != nil {
		return v.Refused(frame.WebhookPath(id), err, fault.Refused)
	}
	flash := frame.Flash{Tone: frame.Bad, Text: "The test was not delivered. " + frame.Sentence(frame.Plain(a.Detail))}
	if a.Delivered() {
		flash = frame.Done("The test was delivered: the receiver answered " + strconv.Itoa(a.Status) + " after " +
			a.Took.Round(time.Millisecond).String() + ".")
	}
	return v.Redirect(frame.WebhookPath(id), flash)
}

func (s *Section) replay(v *frame.Visit) error {
	w, err := s.Service.Replay(v.Context(), v.Company.ID, v.PathValue("webhook"), v.Form.Get("after"))
	return s.redirect(v, err, frame.Either(w.State == webhook.Disabled,
		"What happened since then is sent again once the webhook is enabled.", "What happened since then is sent again."))
}

func (s *Section) askRotate(v *frame.Visit, w webhook.Webhook) error {
	return v.Show("Replace the secret", frame.SettingsPath, rotatePage(v, w))
}

func (s *Section) rotate(v *frame.Visit) error {
	id := v.PathValue("webhook")
	if answered, err := v.SentBefore(s.Steps, account.WebhookForm, frame.WebhookPath(id),
		"the secret was replaced, and is not shown again."); answered || err != nil {
		return err
	}
	w, secret, err := s.Service.Rotate(v.Context(), v.Company.ID, id)
	return v.ShowUnless(err, "The webhook's secret", frame.SettingsPath, secretPage(v, w, secret))
}

func (s *Section) finish(v *frame.Visit) error {
	_, err := s.Service.FinishRotation(v.Context(), v.Company.ID, v.PathValue("webhook"))
	return s.redirect(v, err, "The new secret alone signs from now on.")
}

func (s *Section) enable(v *frame.Visit) error {
	_, err := s.Service.Enable(v.Context(), v.Company.ID, v.PathValue("webhook"))
	return s.redirect(v, err, "The webhook is enabled, and goes on where it stopped.")
}

func (s *Section) remove(v *frame.Visit) error {
	w, err := s.Service.Delete(v.Context(), v.Company.ID, v.PathValue("webhook"))
	return v.Finish(frame.WebhooksPath, err, "The webhook to "+frame.Plain(w.Host())+" is deleted.")
}

// redirect goes back to the webhook's page and says how it went.
func (s *Section) redirect(v *frame.Visit, err error, done string) error {
	return v.Finish(frame.WebhookPath(v.PathValue("webhook")), err, done, fault.Unsupported, fault.CursorExpired, fault.InvalidArguments,
		fault.Refused)
}
