package cli

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/apikey"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/oauth"
	"github.com/musterhq/muster/internal/phrase"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/resource"
)

// Users, keys, connections, policies and assets are named by their id or by their name. An id takes precedence.
// A name that several of them have is refused with their ids.

// maxShownIDs is how many ids of one name an error lists.
const maxShownIDs = 10

// single returns the only one of the ids of the things that ref names, or an error that says why there is not one.
func single(owner company.Company, kind, ref string, ids []string) (string, error) {
	switch {
	case len(ids) == 1:
		return ids[0], nil
	case len(ids) == 0:
		return "", missing(fault.New(fault.NotFound, "not found"), owner.Slug, kind, ref)
	}
	shown, more := ids, ""
	if len(ids) > maxShownIDs {
		shown, more = ids[:maxShownIDs], ", …"
	}
	return "", fault.New(fault.Refused, "company %s has several of the kind %s that are called %q: name one by its id: %s%s", owner.Slug,
		kind, ref, strings.Join(shown, ", "), more)
}

// firstMatch returns the id of the thing of a list that ref names: the first of the matches that any thing has decides.
func firstMatch[T any](ctx context.Context, owner company.Company, kind, ref string, list func(context.Context, string) ([]T, error),
	id func(T) string, matches ...func(T) bool) (string, error) {
	things, err := list(ctx, owner.ID)
	if err != nil {
		return "", err
	}
	var ids []string
	for _, match := range matches {
		for _, thing := range things {
			if match(thing) {
				ids = append(ids, id(thing))
			}
		}
		if len(ids) > 0 {
			break
		}
	}
	return single(owner, kind, ref, ids)
}

// policy finds a company's policy by its short id, its path name or its name.
func (d *Admin) policy(ctx context.Context, owner company.Company, ref string) (policy.Policy, error) {
	if id, ok := resource.Short(owner.Slug, resource.Policies, ref); ok {
		found, err := d.Policies.Current(ctx, owner.ID, id)
		if fault.CodeOf(err) != fault.NotFound {
			return found, err
		}
	}
	id, err := firstMatch(ctx, owner, "policy", ref, d.policies, func(p policy.Policy) string { return p.ID },
		func(p policy.Policy) bool { return p.Name == ref || policy.SameName(ref, p.Name) })
	if err != nil {
		return policy.Policy{}, err
	}
	return d.Policies.Current(ctx, owner.ID, id)
}

// asset finds the short id of a company's asset by that, its path name or its
// identification.
func (d *Admin) asset(ctx context.Context, owner company.Company, ref string) (string, error) {
	if id, ok := resource.Short(owner.Slug, resource.Assets, ref); ok {
		_, err := d.Assets.Asset(ctx, owner.ID, id)
		if fault.CodeOf(err) != fault.NotFound {
			return id, err
		}
	}
	ids, err := d.AssetsNamed(ctx, owner.ID, ref, maxShownIDs+1)
	if err != nil {
		return "", err
	}
	return single(owner, "asset", ref, ids)
}

// user finds the id of a company's user by that, the e-mail address or the name.
func (d *Admin) user(ctx context.Context, owner company.Company, ref string) (string, error) {
	return firstMatch(ctx, owner, "user", ref, d.Users.Users, func(u account.User) string { return u.ID },
		func(u account.User) bool { return u.ID == ref || strings.EqualFold(u.Email, ref) },
		func(u account.User) bool { return u.Name == ref })
}

// key finds the id of a company's API key by that, its prefix or its name. A key that is not revoked takes
// precedence over revoked keys with the same name.
func (d *Admin) key(ctx context.Context, owner company.Company, ref string) (string, error) {
	return firstMatch(ctx, owner, "key", ref, d.Keys.Keys, func(k apikey.Key) string { return k.ID },
		func(k apikey.Key) bool { return k.ID == ref },
		func(k apikey.Key) bool { return k.Prefix == ref },
		func(k apikey.Key) bool { return k.Name == ref && k.RevokedAt.IsZero() },
		func(k apikey.Key) bool { return k.Name == ref })
}

// connection finds the id of a company's OAuth connection by that or its client's name. A connection that is not
// revoked takes precedence over revoked ones with the same name.
func (d *Admin) connection(ctx context.Context, owner company.Company, ref string) (string, error) {
	return firstMatch(ctx, owner, "connection", ref, d.Connections.Connections, func(o oauth.Connection) string { return o.ID },
		func(o oauth.Connection) bool { return o.ID == ref },
		func(o oauth.Connection) bool { return o.ClientName == ref && o.RevokedAt.IsZero() },
		func(o oauth.Connection) bool { return o.ClientName == ref })
}

// atLeastOne refuses a flag's number below 1; nil: the flag is not given.
func atLeastOne(flag string, n *int) error {
	if n != nil && *n < 1 {
		return fmt.Errorf("--%s must be at least 1", flag)
	}
	return nil
}

// oneOf returns a value that can be given by a flag, as the argument, or as both if they are the same.
func oneOf(flag, byFlag, argument string) (string, error) {
	switch {
	case byFlag == "" && argument == "":
		return "", fmt.Errorf("give --%s, or the same as the argument", flag)
	case byFlag != "" && argument != "" && byFlag != argument:
		return "", fmt.Errorf("--%s and the argument differ: give one of them", flag)
	}
	return cmp.Or(byFlag, argument), nil
}

// Durations lets every flag and setting that takes a duration take days, too: 30d, or
// 1d12h.
func Durations() kong.Option {
	return kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
		var text string
		if err := ctx.Scan.PopValueInto("duration", &text); err != nil {
			return err
		}
		d, err := phrase.ParseDuration(text)
		if err != nil {
			return err
		}
		target.SetInt(int64(d))
		return nil
	}))
}

// NoEmptyValue refuses a flag that was given an empty value, as from a script's variable that is not
// set. The command would take it for a flag that was not given, whose default is often everything:
// all networks, all policies, all types of events. Only a reason and a ticket may be empty, flags
// for which that means something (pointers), and settings of the service, as their variables may.
func NoEmptyValue(chosen *kong.Context) error {
	for _, at := range chosen.Path {
		f := at.Flag
		if f == nil || at.Resolved || len(f.Envs) > 0 || f.PlaceHolder == "TEXT" {
			continue
		}
		if f.IsSlice() && f.Target.Len() == 0 || f.Target.Kind() == reflect.String && f.Target.String() == "" {
			return fmt.Errorf("--%s must not be empty: give a value, or leave the flag out", f.Name)
		}
	}
	return nil
}
