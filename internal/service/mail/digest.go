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

// digest is one mail to a user: what waits for a person, and events, summed up by type. Its length
// depends on the number of types, not on the number of events.
type digest struct {
	to    attention.Recipient
	items []attention.Item
	news  []attention.News
}

// settled reports whether the first event of a type is at least Settle ago.
func (d digest) settled(now time.Time) bool {
	return slices.ContainsFunc(d.news, func(n attention.News) bool { return now.Sub(n.First) >= Settle })
}

// subject is the company's name, then what waits, then the events.
func (d digest) subject(company string) string {
	all := make([]string, 0, 2)
	switch len(d.items) {
	case 0:
	case 1:
		all = append(all, sentence(d.items[0]))
	default:
		all = append(all, fmt.Sprintf("%d items need you", len(d.items)))
	}
	switch len(d.news) {
	case 0:
	case 1:
		all = append(all, headline(d.news[0]))
	default:
		var count int64
		for _, n := range d.news {
			count += n.Count
		}
		all = append(all, frame.Number(count)+" events")
	}
	return validate.Clean(company, maxName) + ": " + strings.Join(all, "; ")
}

// sentence is what waits as plain text.
func sentence(i attention.Item) string {
	var b strings.Builder
	for _, p := range frame.AttentionText(i) {
		b.WriteString(p.Text)
	}
	return b.String()
}

// headline is the label of a type with the name of its one event, or the number of events.
func headline(n attention.News) string {
	text := kind(n.Type).Label
	if named := examples(n); n.Count == 1 && len(named) == 1 {
		return text + ": " + named[0]
	}
	return text + ": " + frame.Number(n.Count)
}

// kind is the label and the page of a type. An unknown type is named as it is.
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

// examples returns the names of the events in n.Examples, each name once.
func examples(n attention.News) (names []string) {
	for _, e := range n.Examples {
		if name := validate.Clean(frame.MailExample(e), maxName); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// text is the body, with links below public, the service's URL without a final slash.
func (d digest) text(public string, now time.Time) string {
	var b strings.Builder
	b.WriteString(greeting(d.to.Name) + "\n")
	if len(d.items) > 0 {
		b.WriteString("\nThis needs you:\n")
	}
	for _, i := range d.items[:min(len(d.items), listed)] {
		ends := strings.Replace(" ("+frame.AttentionUntil(i, now)+")", " ()", "", 1)
		fmt.Fprintf(&b, "\n- %s%s\n  %s\n", sentence(i), ends, public+frame.AttentionLink(i))
	}
	if more := len(d.items) - listed; more > 0 {
		fmt.Fprintf(&b, "\nand %d more.\n", more)
	}
	if len(d.items) > 0 {
		fmt.Fprintf(&b, "\nAll of it: %s\n", public+frame.AttentionPath)
	}
	if len(d.news) > 0 {
		b.WriteString("\nThis happened:\n")
	}
	for _, n := range d.news {
		fmt.Fprintf(&b, "\n- %s\n", headline(n))
		if names := examples(n); n.Count > 1 && len(names) > 0 {
			fmt.Fprintf(&b, "  For example: %s\n", strings.Join(names, "; "))
		}
		fmt.Fprintf(&b, "  %s\n", public+kind(n.Type).MailLink(n))
	}
	fmt.Fprintf(&b, "\nWhich mail you get: %s\n", public+frame.AccountPath)
	return b.String()
}
