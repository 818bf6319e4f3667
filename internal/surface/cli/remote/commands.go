package remote

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/alecthomas/kong"

	"github.com/musterhq/muster/internal/client"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/phrase"
	"github.com/musterhq/muster/internal/slice"
)

// Events is the operation of which the command can go on reading.
const Events = "list_events"

// Options adds a command for each operation of a registry to a command line.
func Options(r *operation.Registry) (options []kong.Option) {
	groups, order := map[string][]*operation.Operation{}, []string{}
	for _, o := range r.All() {
		group, name := o.Command()
		if group == "" {
			options = append(options, kong.DynamicCommand(name, o.Title+", at a service.", "", newCall(o)))
			continue
		}
		if groups[group] == nil {
			order = append(order, group)
		}
		groups[group] = append(groups[group], o)
	}
	for _, group := range order {
		options = append(options, kong.DynamicCommand(group, phrase.UpperFirst(group)+" of a service, from any machine.", "",
			commandsOf(groups[group])))
	}
	return options
}

// commandsOf is a struct with a field for each operation's command.
func commandsOf(operations []*operation.Operation) any {
	var fields []reflect.StructField
	for _, o := range operations {
		_, name := o.Command()
		fields = append(fields, reflect.StructField{Name: exported(name), Type: reflect.TypeFor[call](),
			Tag: tag("cmd", "", "name", name, "help", o.Title+".")})
	}
	group := reflect.New(reflect.StructOf(fields))
	for i, o := range operations {
		group.Elem().Field(i).Set(reflect.ValueOf(newCall(o)).Elem())
	}
	return group.Interface()
}

// newCall is the command of one operation.
func newCall(o *operation.Operation) *call {
	c := &call{operation: o, why: &why{}, filter: &filterFlag{}, many: &many{}, following: &following{}}
	if o.Method != "GET" {
		c.Plugins = append(c.Plugins, c.why)
	}
	switch {
	case fansOut(o):
		c.Plugins = append(c.Plugins, c.many)
	case takesFilter(o):
		c.Plugins = append(c.Plugins, c.filter)
	case o.Name == Events:
		c.Plugins = append(c.Plugins, c.following)
	}
	fields := slice.Map(o.Arguments(), func(a operation.Argument) reflect.StructField { return fieldOf(a, fansOut(o)) })
	c.given = reflect.New(reflect.StructOf(fields))
	c.Plugins = append(c.Plugins, c.given.Interface())
	return c
}

// fieldOf is the flag of an argument, or the word that stands for what the path names.
func fieldOf(a operation.Argument, optional bool) reflect.StructField {
	f := reflect.StructField{Name: exported(a.Name), Type: map[string]reflect.Type{
		"text": reflect.TypeFor[*string](), "json": reflect.TypeFor[*string](), "number": reflect.TypeFor[*int64](),
		"boolean": reflect.TypeFor[*bool](), "texts": reflect.TypeFor[[]string](),
	}[a.Kind]}
	name, help := flagName(a.Name), a.Doc
	if a.In == "path" {
		pairs := []string{"arg", "", "name", name, "help", help}
		if optional {
			pairs = append(pairs, "optional", "")
		}
		f.Tag = tag(pairs...)
		return f
	}
	if len(a.Values) > 0 && !strings.Contains(help, a.Values[0]) {
		help += " One of " + strings.Join(a.Values, "; ") + "."
	}
	if a.Default != "" {
		help += " Default: " + a.Default + "."
	}
	pairs := []string{"name", name, "help", help, "sep", "none", "placeholder", strings.ToUpper(a.Kind)}
	switch {
	case a.Secret:
		pairs[1], pairs[3], pairs[7] = name+"-file", help+" The file that holds it, or - for standard input.", "FILE"
	case a.Kind == "texts":
		pairs[3], pairs[7] = help+" Repeat the flag for more than one.", "TEXT"
	}
	if a.Required {
		pairs = append(pairs, "required", "")
	}
	f.Tag = tag(pairs...)
	return f
}

// tag is a struct tag of names and values.
func tag(pairs ...string) reflect.StructTag {
	var all []string
	for pair := range slices.Chunk(pairs, 2) {
		all = append(all, pair[0]+":"+strconv.Quote(pair[1]))
	}
	return reflect.StructTag(strings.Join(all, " "))
}

// flagName is a member's name as flags have it: seenBefore is seen-before.
func flagName(name string) string {
	var b strings.Builder
	for _, r := range name {
		if unicode.IsUpper(r) {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// exported is the name of a field in Go for a member or command.
func exported(name string) string {
	return fmt.Sprintf("X_%s", strings.ReplaceAll(name, "-", "_"))
}

// fansOut reports whether an operation is for several devices: it changes one and destroys
// nothing.
func fansOut(o *operation.Operation) bool {
	group, _ := o.Command()
	return group == "devices" && o.Effect == operation.Writing && len(o.PathArgs()) == 1
}

// takesFilter reports whether an operation reads devices by filters.
func takesFilter(o *operation.Operation) bool { return o.Method == "GET" && takes(o, "seenBefore") }

func takes(o *operation.Operation, argument string) bool {
	return slices.ContainsFunc(o.Arguments(), func(a operation.Argument) bool { return a.Name == argument })
}

// followWait is how long the service holds a request for events, in seconds, and
// followPause how long the command waits when there is no service.
const (
	followWait  = "30"
	followPause = 5 * time.Second
)

// follow prints events as they come: with -o json each as one line. A service that cannot
// be reached is asked again, from where the reading was; the first failure in a row is told.
func (c *call) follow(env *Env, service *client.Client, r client.Request) error {
	for failed := false; ; {
		answer, err := service.Do(env.Context, r)
		if env.Context.Err() != nil {
			return nil
		}
		if pause, again := followAgain(err); again {
			if !failed {
				fmt.Fprintf(env.Err, "muster: %s; trying again\n", plain(err.Error()))
			}
			failed = true
			if !env.wait(env.Context, pause) {
				return nil
			}
			continue
		}
		if err != nil {
			return err
		}
		failed = false
		var page struct {
			Events []json.RawMessage `json:"events"`
			Next   string            `json:"next"`
		}
		if err := json.Unmarshal(answer.Body, &page); err != nil {
			return fmt.Errorf("the answer of the service is not JSON: %w", err)
		}
		for _, event := range page.Events {
			if err := c.printEvent(env, event); err != nil {
				return err
			}
		}
		r.Query.Set("after", page.Next)
		r.Query.Set("wait", followWait) // not before there is a place: what happens while "latest" waits would be lost with its answer
	}
}

// followAgain reports whether a failed reading goes on, and after which pause.
func followAgain(err error) (time.Duration, bool) {
	p, answered := errors.AsType[*client.Problem](err)
	switch {
	case err == nil:
		return 0, false
	case !answered:
		return followPause, true
	case p.Status == http.StatusTooManyRequests, p.Status >= http.StatusInternalServerError:
		return max(p.RetryAfter, followPause), true
	}
	return 0, false
}

func (c *call) printEvent(env *Env, event json.RawMessage) error {
	if c.Output == "json" {
		_, err := fmt.Fprintln(env.Out, string(event))
		return err
	}
	var e struct {
		ID   string         `json:"id"`
		Type string         `json:"type"`
		At   string         `json:"at"`
		Data map[string]any `json:"data"`
	}
	if err := json.Unmarshal(event, &e); err != nil {
		return err
	}
	cells := []string{e.At, e.Type}
	for _, name := range []string{"assetId", "policyId", "proposalId", "status"} {
		if value, ok := e.Data[name].(string); ok {
			cells = append(cells, value)
		}
	}
	_, err := fmt.Fprintln(env.Out, plain(strings.Join(cells, "  ")))
	return err
}
