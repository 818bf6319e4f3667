package mail

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/approval/attention"
	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/surface/portal/frame"
	"github.com/musterhq/muster/internal/validate"
)

// digest is one mail to a user: decisions that wait, and what happened. Its length depends
// on the number of types and not on how much happened.
type digest struct {
	to    attention.Recipient
	items []attention.Item
	news  []attention.News
}

// settled reports whether something happened long enough ago to be mailed.
func (l digest) settled(now time.Time) bool {
	return slices.ContainsFunc(l.news, func(n attention.News) bool { return now.Sub(n.First) >= Settle })
}

// subject names what is in the mail, decisions before the rest.
func (l digest) subject(company string) string {
	all := make([]string, 0, 2)
	switch len(l.items) {
	case 0:
	case 1:
		all = append(all, sentence(l.items[0]))
	default:
		all = append(all, fmt.Sprintf("%d decisions wait for you", len(l.items)))
	}
	switch len(l.news) {
	case 0:
	case 1:
		all = append(all, headline(l.news[0]))
	default:
		var count int64
		for _, n := range l.news {
			count += n.Count
		}
		all = append(all, frame.Number(count)+" events")
	}
	return validate.Clean(company, maxName) + ": " + strings.Join(all, "; ")
}

func sentence(i attention.Item) string {
	var b strings.Builder
	for _, p := range frame.AttentionText(i) {
		b.WriteString(p.Text)
	}
	return b.String()
}

func headline(n attention.News) string {
	text := kind(n.Type).Label
	if named := examples(n); n.Count == 1 && len(named) == 1 {
		return text + ": " + named[0]
	}
	return text + ": " + frame.Number(n.Count)
}

// kind is how mail calls a type.
func kind(t event.Type) frame.MailType {
	for _, g := range frame.MailGroups() {
		for _, k := range g.Types {
			if k.Type == t {
				return k
			}
		}
	}
	return frame.MailType{Type: t, Label: string(t), Many: frame.ActivityPath}
}

// examples names a few events; a device that is there twice is named once.
func examples(n attention.News) (names []string) {
	for _, e := range n.Examples {
		if name := validate.Clean(frame.MailExample(e), maxName); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func (l digest) text(public string, now time.Time) string {
	var b strings.Builder
	b.WriteString(greeting(l.to.Name) + "\n")
	if len(l.items) > 0 {
		b.WriteString("\nThis waits for your decision:\n")
	}
	for _, i := range l.items[:min(len(l.items), listed)] {
		fmt.Fprintf(&b, "\n- %s (%s)\n  %s\n", sentence(i), frame.AttentionUntil(i, now), public+frame.AttentionLink(i))
	}
	if more := len(l.items) - listed; more > 0 {
		fmt.Fprintf(&b, "\nand %d more.\n", more)
	}
	if len(l.items) > 0 {
		fmt.Fprintf(&b, "\nAll of it: %s\n", public+frame.AttentionPath)
	}
	if len(l.news) > 0 {
		b.WriteString("\nThis happened:\n")
	}
	for _, n := range l.news {
		fmt.Fprintf(&b, "\n- %s\n", headline(n))
		if names := examples(n); n.Count > 1 && len(names) > 0 {
			fmt.Fprintf(&b, "  For example: %s\n", strings.Join(names, "; "))
		}
		fmt.Fprintf(&b, "  %s\n", public+kind(n.Type).MailLink(n))
	}
	fmt.Fprintf(&b, "\nWhich mail you get: %s\n", public+frame.AccountPath)
	return b.String()
}
