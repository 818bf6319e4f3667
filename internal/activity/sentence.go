package activity

import (
	"cmp"
	"strings"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/validate"
)

// Sentence describes an entry in English: who did what to what. All surfaces show the same sentence. It
// contains no ids.
type Sentence struct {
	Who Actor
	Did []Part // the rest, such as "turned approval of policy changes off"
	// Loosens: the change lets API keys, AI clients or people do more than before.
	Loosens bool
}

// Actor is the subject of a sentence.
type Actor struct {
	Name   string // of a key, a client, a person, or the service
	Prefix string // of a key: several keys can have the same name
}

// Part is a part of a sentence. If Name is set, the text is from a device or a person, without control
// characters. Surfaces isolate it, so that right-to-left text does not change the order of the parts around it.
type Part struct {
	Text string
	Name bool
}

// Verbs returns the words of a command's type: the verb in the past tense and in its base form, which the device's
// name follows, and the noun, such as "a wipe of". They are empty for an unknown type.
type Verbs func(commandType string) (past, base, noun string)

// String is the sentence without its actor, as plain text.
func (s Sentence) String() string {
	var b strings.Builder
	for _, p := range s.Did {
		b.WriteString(p.Text)
	}
	return b.String()
}

// maxName limits a name in a sentence, in characters.
const maxName = 300

// Tell returns an entry's sentence.
func (e Entry) Tell(verbs Verbs) Sentence {
	clauses, end := e.clauses(verbs), e.Ended()
	if e.Action == ApprovalVoid || e.Action == AuthorizationVoid {
		end = Done // the outcome says that the approval was refused: that was done
	}
	s := Sentence{Who: ActorOf(e.Actor)}
	for i, c := range clauses {
		switch {
		case i == 0:
		case i == len(clauses)-1:
			s.Did = append(s.Did, Part{Text: " and "})
		default:
			s.Did = append(s.Did, Part{Text: ", "})
		}
		s.Did = append(append(s.Did, Part{Text: c.verb(end)}), c.rest...)
		s.Loosens = s.Loosens || c.loosens && end != Wrong
	}
	return s
}

// verb is the verb as the end demands: "locked", "asked to lock".
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

// ActorOf returns an actor as the subject of a sentence.
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

// End is the result of what an entry reports.
type End int

// The ends.
const (
	Done     End = iota // it succeeded
	Open                // the device has not answered the command
	Doubtful            // the result is not known
	Wrong               // it failed, or was refused
	Unkept              // the command was deleted, and its result with it
)

// Ended returns an entry's end: for a command by its present state, else by the recorded outcome.
func (e Entry) Ended() End {
	if e.Action.Area() != "command" || e.Outcome != OK {
		return map[Outcome]End{OK: Done, Refused: Wrong, Failed: Wrong, Unconfirmed: Doubtful}[e.Outcome]
	}
	if end, final := map[string]End{"SUCCESS": Done, "ERROR": Wrong, "UNCONFIRMED": Doubtful, "": Unkept}[e.State]; final {
		return end
	}
	return Open
}

// clause is a verb with its object. A sentence with several is about changes that were made together.
type clause struct {
	past, base string // the verb, in the past tense and in its base form
	rest       []Part // the object
	loosens    bool   // as of Sentence
}

// does is a clause of a verb and the words after it.
func does(past, base, words string) clause {
	return clause{past: past, base: base}.words(" " + words)
}

// name appends a space and a name.
func (c clause) name(name string) clause {
	c.rest = append(c.rest, Part{Text: " "}, Part{validate.Clean(name, maxName), true})
	return c
}

// words appends words.
func (c clause) words(words string) clause {
	c.rest = append(c.rest, Part{Text: words})
	return c
}

// clauses returns an entry's clauses: one, unless several settings changed.
func (e Entry) clauses(verbs Verbs) []clause {
	area, verb, _ := strings.Cut(string(e.Action), ".")
	if past, base, _ := verbs(strings.ToUpper(verb)); area == "command" && past != "" {
		return []clause{(clause{past: past, base: base}).name(e.target())}
	}
	var all []clause
	switch {
	case area == "company":
		all = e.companyClauses()
	case e.Action == UserChanged:
		all = e.userClauses()
	case e.Action == ConnectionChanged:
		all = e.connectionClauses()
	case e.Action == AssetChanged:
		all = e.editClauses()
	case area == "authorization":
		all = []clause{e.authorizationClause(verbs)}
	case area == "proposal":
		all = []clause{e.proposalClause()}
	}
	if len(all) == 0 {
		all = []clause{e.plainClause()}
	}
	return all
}

// plainClause is an action with its target: by the words of plainWords, else by the action's name.
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
	verb := strings.NewReplacer(".", " ", "_", " ").Replace(string(e.Action))
	return clause{past: verb, base: verb}.name(e.target())
}

// target is the name of the entry's target, or its kind if it has no name.
func (e Entry) target() string {
	words := map[Kind]string{Asset: "a device", Policy: "a policy", User: "a user", Key: "an API key", Connection: "an AI client",
		Company: "the company"}
	return cmp.Or(validate.Clean(cmp.Or(e.Target.Name, e.Device), maxName), words[e.Target.Kind])
}

// after is a field's new value; empty: it did not change.
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
