package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/name"
	"github.com/musterhq/muster/internal/operation"
)

// UserCommands manage the people who sign in to the portal.
type UserCommands struct {
	Create  UserCreate  `cmd:"" help:"Create a portal user."`
	List    UserList    `cmd:"" help:"List a company's users."`
	Disable UserDisable `cmd:"" help:"Shut a user out: sessions and connections end at once."`
}

// UserCreate makes a user.
type UserCreate struct {
	OfCompany
	Email         string   `name:"email" required:"" help:"The address that the user signs in with."`
	Name          string   `name:"name" help:"The user's name; by default the address."`
	Role          string   `name:"role" enum:"admin,manager,operator,viewer" default:"viewer" help:"What the user may do: admin, manager, operator or viewer."`
	Policy        []string `name:"policy" placeholder:"PATHNAME" help:"Limit the user to this policy and its devices; repeat for more. By default all."`
	PasswordStdin bool     `name:"password-stdin" required:"" help:"Read the password from the first line of standard input."`
}

// Run creates the user.
func (c *UserCreate) Run(env *Env) error {
	password, err := readLine(env.In)
	if err != nil {
		return err
	}
	return c.run(env, func(ctx context.Context, desk *Desk) (answer, error) {
		owner, err := desk.company(ctx, c.Company)
		if err != nil {
			return answer{}, err
		}
		policies, err := desk.policyIDs(ctx, owner.ID, owner.Slug, c.Policy)
		if err != nil {
			return answer{}, err
		}
		u, err := desk.people(env).Create(ctx, access.NewUserRequest{CompanyID: owner.ID, Email: c.Email, Name: c.Name,
			Role: access.Role(c.Role), Policies: policies, Password: password})
		return answer{viewUser(owner.Slug, u), func(w io.Writer) { fmt.Fprintf(w, "Created user %s (%s).\n", u.Email, u.Role) }}, err
	})
}

const maxPasswordLine = 4096 // bytes

func readLine(in io.Reader) (string, error) {
	line, err := bufio.NewReader(io.LimitReader(in, maxPasswordLine)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("cannot read the password from standard input: %w", err)
	}
	return strings.TrimRight(line, "\r\n"), nil
}

func (d *Desk) people(env *Env) access.Users {
	return access.Users{Store: d.Users, Passwords: access.NewPasswords(1), Now: env.Now}
}

// policyIDs finds the policies that are named; none named: nil, which is all.
func (d *Desk) policyIDs(ctx context.Context, companyID, slug string, refs []string) ([]string, error) {
	var ids []string
	for _, ref := range refs {
		id, ok := name.Short(slug, name.Policies, ref)
		var err error
		if ok {
			_, err = d.Policies.Current(ctx, companyID, id)
		}
		if !ok || fault.CodeOf(err) == fault.NotFound {
			return nil, fault.New(fault.NotFound, "company %s has no policy %q: `muster policy list --company %s` shows those there are", slug, ref, slug)
		}
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// UserList lists users.
type UserList struct{ OfCompany }

// Run prints the list.
func (c *UserList) Run(env *Env) error {
	return c.run(env, func(ctx context.Context, desk *Desk) (answer, error) {
		owner, err := desk.company(ctx, c.Company)
		if err != nil {
			return answer{}, err
		}
		users, err := desk.Users.Users(ctx, owner.ID)
		views := make([]userView, len(users))
		for i, u := range users {
			views[i] = viewUser(owner.Slug, u)
		}
		return answer{views, func(w io.Writer) {
			row(w, "ID", "E-MAIL", "NAME", "ROLE", "STATE", "LAST SIGN-IN")
			for _, u := range users {
				state := "enabled"
				if u.Disabled {
					state = "disabled"
				}
				row(w, u.ID, u.Email, u.Name, string(u.Role), state, day(u.LastSignInAt))
			}
		}}, err
	})
}

// UserDisable shuts a user out.
type UserDisable struct {
	OfCompany
	User string `arg:"" help:"The user's id or e-mail address."`
}

// Run disables the user.
func (c *UserDisable) Run(env *Env) error {
	return c.run(env, func(ctx context.Context, desk *Desk) (answer, error) {
		owner, err := desk.company(ctx, c.Company)
		if err != nil {
			return answer{}, err
		}
		id := c.User
		if strings.Contains(id, "@") {
			u, err := desk.Users.UserByEmail(ctx, strings.ToLower(id))
			if err != nil && fault.CodeOf(err) != fault.NotFound {
				return answer{}, err
			}
			id = u.ID
		}
		u, err := desk.people(env).Disable(ctx, owner.ID, id)
		if fault.CodeOf(err) == fault.NotFound {
			err = fault.New(fault.NotFound, "company %s has no user %q: `muster user list --company %s` shows those there are", owner.Slug, c.User, owner.Slug)
		}
		return answer{viewUser(owner.Slug, u), func(w io.Writer) { fmt.Fprintf(w, "Disabled user %s.\n", u.Email) }}, err
	})
}

type userView struct {
	ID           string             `json:"id"`
	Email        string             `json:"email"`
	Name         string             `json:"name"`
	Role         string             `json:"role"`
	Rights       []string           `json:"rights"`
	Policies     []string           `json:"policies"` // null: all
	Disabled     bool               `json:"disabled"`
	CreatedAt    *operation.Instant `json:"createdAt"`
	LastSignInAt *operation.Instant `json:"lastSignInAt"`
}

func viewUser(slug string, u access.UserAccount) userView {
	var policies []string
	for _, id := range u.Policies {
		policies = append(policies, name.Of(slug, name.Policies, id))
	}
	return userView{ID: u.ID, Email: u.Email, Name: u.Name, Role: string(u.Role), Rights: u.Rights.Names(), Policies: policies, Disabled: u.Disabled,
		CreatedAt: operation.Moment(u.CreatedAt), LastSignInAt: operation.Moment(u.LastSignInAt)}
}
