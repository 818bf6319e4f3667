package remote

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/client"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/surface/cli"
)

// call is the command of one operation.
type call struct {
	Connection
	kong.Plugins // what the operation takes

	operation *operation.Operation
	given     reflect.Value // a pointer to a struct with a field for each argument
	// What commands of some kinds take.
	why       *why
	filter    *filterFlag
	many      *many
	following *following
}

// why is why a change is made.
type why struct {
	Reason string `name:"reason" placeholder:"TEXT" help:"Why, for the record: at most 200 characters."`
	Ticket string `name:"ticket" placeholder:"TEXT" help:"Number of a ticket, for the record: at most 100 characters."`
}

// filterFlag is a query in place of a flag for each filter.
type filterFlag struct {
	Filter *string `name:"filter" placeholder:"QUERY" help:"Filters as a query: 'tag=store-12&policyBehind=true'. Times may be durations: 'seenBefore=48h'. 'all=true' means all."`
}

// following is for commands that go on reading.
type following struct {
	Follow bool `name:"follow" help:"Go on until interrupted: print each event when it comes."`
}

// Help is printed below the flags.
func (c call) Help() string { return c.operation.Description }

// Run makes the call, or one for each device.
func (c *call) Run(env *Env) error {
	if c.many.Filter != nil {
		return failure(c.each(env))
	}
	return failure(c.once(env))
}

// once makes one call and prints its answer.
func (c *call) once(env *Env) error {
	if c.many.New {
		return usage("--new goes with --filter")
	}
	request, err := c.request(env)
	if err != nil {
		return err
	}
	service, err := c.open(env)
	if err != nil {
		return err
	}
	if c.following.Follow {
		return c.follow(env, service, request)
	}
	if c.operation.Method != "GET" {
		request.IdempotencyKey = resource.NewID()
	}
	answer, err := service.Do(env.Context, request)
	if c.operation.Method != "GET" && c.operation.Effect != operation.Reading && unknown(err) {
		return &cli.ExitError{Code: cli.ExitUnconfirmed,
			Text: plain(fmt.Sprintf("UNCONFIRMED: %v; it may have been done: look before you send it again", err))}
	}
	if err != nil {
		return err
	}
	if err := show(env.Out, c.Output, answer.Body, c.operation.Plain()); err != nil {
		return err
	}
	if answer.Unconfirmed() {
		return &cli.ExitError{Code: cli.ExitUnconfirmed, Text: "UNCONFIRMED: it may have been done: look before you send it again"}
	}
	return nil
}

// unknown reports whether a call that failed may have been carried out.
func unknown(err error) bool {
	if problem, ok := errors.AsType[*client.Problem](err); ok {
		return problem.Unknown()
	}
	_, lost := errors.AsType[*client.Lost](err)
	return lost
}

// arguments are those that were given, by name.
func (c *call) arguments(env *Env) (map[string]any, error) {
	all := map[string]any{}
	for i, a := range c.operation.Arguments() {
		v := c.given.Elem().Field(i)
		switch given := v.Interface().(type) {
		case *string:
			if given == nil {
				continue
			}
			value, err := c.textOf(env, a, *given)
			if err != nil {
				return nil, err
			}
			all[a.Name] = value
		case []string:
			if len(given) == 1 && given[0] == "" && a.In != "query" {
				given = []string{} // --tags= takes all away; an empty filter is refused
			}
			if given != nil {
				all[a.Name] = given
			}
		default:
			if !v.IsNil() {
				all[a.Name] = v.Elem().Interface()
			}
		}
	}
	return all, nil
}

// textOf is the value of an argument that was given as a text.
func (c *call) textOf(env *Env, a operation.Argument, given string) (any, error) {
	switch {
	case a.Secret:
		return input(env, given)
	case a.Kind == "json" && !json.Valid([]byte(given)):
		return nil, usage("--%s must be JSON", flagName(a.Name))
	case a.Kind == "json":
		return json.RawMessage(given), nil
	case a.In == "query": // a time may be a duration
		if a.Name == "policy" {
			return given, namesPolicy("--policy: policy", given)
		}
		return asset.Absolute(url.Values{a.Name: {given}}, env.Now()).Get(a.Name), nil
	}
	return given, nil
}

// request is the call as REST has it. Arguments that the declaration refuses are bad
// usage, before anything is sent.
func (c *call) request(env *Env) (client.Request, error) {
	given, err := c.arguments(env)
	if err != nil {
		return client.Request{}, err
	}
	if c.filter.Filter != nil {
		if err := c.addFilter(given, *c.filter.Filter, env); err != nil {
			return client.Request{}, err
		}
	}
	if _, chosen := given["view"]; !chosen && c.Output == "table" && takesFilter(c.operation) && takes(c.operation, "view") {
		given["view"] = "BASIC" // what fits a table
	}
	return c.build(given)
}

func (c *call) build(given map[string]any) (client.Request, error) {
	for _, name := range c.operation.PathArgs() {
		if text, _ := given[name].(string); text == "" {
			return client.Request{}, usage("name a device, or several with --filter") // other commands always have theirs
		}
	}
	if _, wrong := (operation.NoteFields{Reason: "--reason", Ticket: "--ticket"}).Read(c.why.Reason, c.why.Ticket); wrong != nil {
		return client.Request{}, usage("%s", cli.Message(wrong))
	}
	flat, err := json.Marshal(given)
	if err != nil {
		return client.Request{}, err
	}
	if err := c.operation.Check(operation.Named(flat)); err != nil {
		return client.Request{}, usage("%s", cli.Message(err))
	}
	r := client.Request{Method: c.operation.Method, Path: client.Base + c.operation.Path, Query: url.Values{}, Reason: c.why.Reason,
		Ticket: c.why.Ticket}
	body := map[string]any{}
	for _, a := range c.operation.Arguments() {
		value, ok := given[a.Name]
		switch {
		case !ok:
		case a.In == "path":
			r.Path = strings.ReplaceAll(r.Path, "{"+a.Name+"}", url.PathEscape(value.(string)))
		case a.In == "query":
			r.Query[a.Name] = texts(value)
		default:
			body[a.Name] = value
		}
	}
	if len(body) > 0 || c.operation.HasBody() && !c.operation.BodyOptional {
		r.Body, err = json.Marshal(body)
	}
	return r, err
}

func texts(value any) []string {
	if all, ok := value.([]string); ok {
		return all
	}
	return []string{fmt.Sprint(value)}
}

// addFilter adds the filters of a query to arguments, each as its declaration has it.
func (c *call) addFilter(given map[string]any, query string, env *Env) error {
	values, err := filters(query, env)
	kinds := map[string]string{}
	for _, a := range c.operation.Arguments() {
		kinds[a.Name] = a.Kind
	}
	for name, texts := range values {
		if _, twice := given[name]; twice {
			return usage("--filter and --%s say the same: give one of them", flagName(name))
		}
		given[name] = filterValue(kinds[name], texts)
	}
	return err
}

// filters are those of a query that a person writes; a query that is refused is bad usage.
func filters(query string, env *Env) (url.Values, error) {
	if _, err := asset.ParseFilter(query, env.Now()); err != nil {
		return nil, usage("--filter: %s", fault.From(err).Detail+detailOf(err))
	}
	values, _ := url.ParseQuery(query) // it was read
	if values.Has("all") {
		return nil, nil
	}
	if err := namesPolicy("--filter: policy", values.Get("policy")); err != nil {
		return nil, err
	}
	return asset.Absolute(values, env.Now()), nil
}

// namesPolicy is bad usage for a filter that names a policy in another way than by its id: it would
// match nothing. what is the filter, for people; an empty one is no filter.
func namesPolicy(what, policy string) error {
	if policy == "" || resource.IsID(policy[strings.LastIndexByte(policy, '/')+1:]) {
		return nil
	}
	return usage("%s must be a policy's pathName, as 'muster policies list' prints it: %q matches nothing", what, policy)
}

// detailOf are the names at fault, where the text does not say them.
func detailOf(err error) (text string) {
	for _, f := range fault.From(err).Fields {
		if !strings.Contains(fault.From(err).Detail, f.Field) {
			text += "; " + f.Field + " " + f.Message
		}
	}
	return text
}

// filterValue is a filter of a kind as arguments have it. The query was read, so a number
// is one.
func filterValue(kind string, values []string) any {
	switch kind {
	case "texts":
		return values
	case "boolean":
		return values[0] == "true"
	case "number":
		return json.Number(values[0])
	}
	return values[0]
}
