package activity

import (
	"cmp"
	"strings"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/validate"
)

// Sentence is an entry for people: who did what, to what, and in which direction. Every
// surface shows it; none forms one of its own. It never has an id.
type Sentence struct {
	Who Actor
	Did []Part // after the actor: "turned approval of policy changes off"
	// Loosens marks what lets API keys, AI clients or people do more than before.
	Loosens bool
}

// Actor is who did it, for people.
type Actor struct {
	Name   string // of a key, a client, a person, or the service
	Prefix string // of a key: keys may have one name
}

// Part is a piece of a sentence. A name is a text of a device or a person: clean, and to be
// shown so that its direction of writing does not change what is around it.
type Part struct {
	Text string
	Name bool
}

// Verbs returns the words of a type of command: the verb with the device as its object, in
// the past and as it is called, and the noun, such as "a wipe of". Empty: no such type.
type Verbs func(commandType string) (past, base, noun string)

// String is the sentence without its actor, as plain text.
func (s Sentence) String() string {
	var b strings.Builder
	for _, p := range s.Did {
		b.WriteString(p.Text)
	}
	return b.String()
}

// maxName bounds a name in a sentence, in characters.
const maxName = 300

// Tell forms an entry's sentence.
func (e Entry) Tell(verbs Verbs) Sentence {
	all, end := e.clauses(verbs), e.Ended()
	if e.Action == ApprovalVoid || e.Action == AuthorizationVoid {
		end = Done // the approval is refused, not what the service did
	}
	s := Sentence{Who: ActorOf(e.Actor)}
	for i, c := range all {
		switch {
		case i == 0:
		case i == len(all)-1:
			s.Did = append(s.Did, Part{Text: " and "})
		default:
			s.Did = append(s.Did, Part{Text: ", "})
		}
		s.Did = append(append(s.Did, Part{Text: c.verb(end)}), c.rest...)
		s.Loosens = s.Loosens || c.loosens && end != Wrong
	}
	return s
}

// verb is the verb by how it ended: "locked", "asked to lock".
func (c clause) verb(end End) string {
	switch end {
	case Open, Unkept:
		return "asked to " + c.base
	case Wrong:
		return "tried to " + c.base
	case Doubtful:
		return "may have " + c.past
	default:
		return c.past
	}
}

// ActorOf names an actor.
func ActorOf(a access.Actor) Actor {
	name := validate.Clean(a.Name, maxName)
	switch a.Kind {
	case access.APIKey:
		return Actor{cmp.Or(name, "API key"), a.Prefix}
	case access.Connection:
		return Actor{Name: cmp.Or(name, "An AI client") + " (AI)"}
	case access.User:
		return Actor{Name: cmp.Or(name, "A user")}
	default:
		return Actor{Name: cmp.Or(name, "Muster")}
	}
}

// End is how what an entry reports ended.
type End int

// The ends.
const (
	Done     End = iota
	Open         // a command whose device has not answered
	Doubtful     // it is not known
	Wrong        // it failed, or was refused
	Unkept       // the result of a command is not kept any more
)

// Ended is how an entry ended: of a command, as it is now.
func (e Entry) Ended() End {
	if e.Action.Area() == "command" && e.Outcome == OK {
		switch e.State {
		case "SUCCESS":
			return Done
		case "ERROR":
			return Wrong
		case "UNCONFIRMED":
			return Doubtful
		case "":
			return Unkept
		}
		return Open
	}
	switch e.Outcome {
	case Refused, Failed:
		return Wrong
	case Unconfirmed:
		return Doubtful
	default:
		return Done
	}
}

// clause is what was done, with its object.
type clause struct {
	past, base string
	rest       []Part
	loosens    bool
}

// does is a clause of a verb and what follows it.
func does(past, base, words string) clause {
	return clause{past: past, base: base}.words(" " + words)
}

// name adds a name, after a space.
func (c clause) name(name string) clause {
	c.rest = append(c.rest, Part{Text: " "}, Part{validate.Clean(name, maxName), true})
	return c
}

func (c clause) words(words string) clause {
	c.rest = append(c.rest, Part{Text: words})
	return c
}

// clauses are what an entry reports: one, unless settings changed together.
func (e Entry) clauses(verbs Verbs) []clause {
	area, verb, _ := strings.Cut(string(e.Action), ".")
	if past, base, _ := verbs(strings.ToUpper(verb)); area == "command" && past != "" {
		return []clause{(clause{past: past, base: base}).name(e.target())}
	}
	switch area {
	case "company":
		if all := e.companyClauses(); len(all) > 0 {
			return all
		}
	case "user":
		if all := e.userClauses(); e.Action == UserChanged && len(all) > 0 {
			return all
		}
	case "connection":
		if all := e.connectionClauses(); e.Action == ConnectionChanged && len(all) > 0 {
			return all
		}
	case "asset":
		if all := e.editClauses(); e.Action == AssetChanged && len(all) > 0 {
			return all
		}
	case "authorization":
		return []clause{e.authorizationClause(verbs)}
	case "proposal":
		return []clause{e.proposalClause()}
	}
	return []clause{e.plainClause()}
}

// plainClause is an action with its target.
func (e Entry) plainClause() clause {
	for _, w := range plainWords() {
		if w.action == e.Action {
			c := clause{past: w.past, base: w.base, rest: []Part{{Text: w.words}}}
			if e.Action == AssetsImported {
				return c.words(" " + e.after("assets") + counted(e.after("assets"), " asset", " assets") + e.reimported())
			}
			return c.name(e.target())
		}
	}
	area, verb, _ := strings.Cut(string(e.Action), ".")
	return clause{past: area + " " + strings.ReplaceAll(verb, "_", " "),
		base: area + " " + strings.ReplaceAll(verb, "_", " ")}.name(e.target())
}

// target is what something was done to, by its name.
func (e Entry) target() string {
	words := map[Kind]string{Asset: "a device", Policy: "a policy", User: "a user", Key: "an API key", Connection: "an AI client",
		Company: "the company"}
	return cmp.Or(validate.Clean(cmp.Or(e.Target.Name, e.Device), maxName), words[e.Target.Kind])
}

// after is what a field became; empty: it did not change.
func (e Entry) after(field string) string {
	for _, c := range e.Changes {
		if c.Field == field {
			return c.After
		}
	}
	return ""
}

func counted(n, one, many string) string {
	if n == "1" {
		return one
	}
	return many
}
