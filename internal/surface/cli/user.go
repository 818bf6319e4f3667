package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/apikey"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/phrase"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/slice"
)

// UserCommands manage the people who sign in to the portal.
type UserCommands struct {
	Create         UserCreate         `cmd:"" help:"Create a portal user."`
	List           UserList           `cmd:"" help:"List a company's users."`
	SetPassword    UserSetPassword    `cmd:"" help:"Set a user's password; sessions end at once."`
	RemovePasskeys UserRemovePasskeys `cmd:"" help:"Take all passkeys and recovery codes from a user, who then signs in with the password alone; sessions end at once."`
	SetRole        UserSetRole        `cmd:"" help:"Give a user a role and its rights."`
	Disable        UserDisable        `cmd:"" help:"Shut a user out: sessions and connections end at once."`
	Enable         UserEnable         `cmd:"" help:"Let a user who was shut out sign in again."`
	Mail           UserMail           `cmd:"" help:"Show or set which mail a user gets."`
	Delete         UserDelete         `cmd:"" help:"Delete a user with sessions, passkeys and connections. API keys and the record of what the user did stay."`
}

// UserCreate makes a user.
type UserCreate struct {
	OfCompany
	Email  string   `name:"email" help:"The address that the user signs in with."`
	User   string   `arg:"" optional:"" name:"user" help:"The address, instead of --email."`
	Name   string   `name:"name" help:"The user's name; by default the address."`
	Role   string   `name:"role" enum:"admin,manager,operator,viewer" default:"viewer" help:"What the user may do: admin, manager, operator or viewer."`
	Policy []string `name:"policy" sep:"none" placeholder:"POLICY" help:"Limit the user to this policy and its devices; repeat for more. By default all."`
	newPassword
}

// Validate wants the address, one way or both alike, and what a user may have.
func (c *UserCreate) Validate() error {
	if slices.Contains(c.Policy, "") {
		return errors.New("--policy must not be empty: give a value, or leave the flag out")
	}
	if _, err := oneOf("email", c.Email, c.User); err != nil {
		return err
	}
	return c.request().Check()
}

// request is what the flags ask for, without what is looked up and read.
func (c *UserCreate) request() account.NewUserRequest {
	return account.NewUserRequest{Email: cmp.Or(c.Email, c.User), Name: c.Name, Role: account.Role(c.Role)}
}

// newPassword takes a password from a terminal or from standard input.
type newPassword struct {
	PasswordStdin bool `name:"password-stdin" help:"Read the password from the first line of standard input. Without it, it is asked twice at the terminal, without being shown."`
}

// read returns the password; it is asked for once the company and the user are found. At a terminal it is asked for, whatever the flag
// says, because what is typed there would be seen.
func (p newPassword) read(env *Env) (string, error) {
	if file, ok := env.In.(*os.File); ok && env.Err != nil && term.IsTerminal(int(file.Fd())) {
		return askTwice(env, int(file.Fd()))
	}
	if !p.PasswordStdin {
		return "", fault.Invalid("standard input is no terminal: give --password-stdin and the password in its first line, such as " +
			"`--password-stdin < FILE`")
	}
	in, err := env.Input("-")
	if err != nil {
		return "", err
	}
	defer in.Close()
	line, err := bufio.NewReader(io.LimitReader(in, maxPasswordLine)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("cannot read the password from standard input: %w", err)
	}
	return strings.TrimRight(line, "\r\n"), nil
}

func askTwice(env *Env, terminal int) (string, error) {
	var typed [2]string
	for i, prompt := range []string{"Password: ", "The same again: "} {
		fmt.Fprint(env.Err, prompt)
		text, err := unseen(env.Context, terminal)
		fmt.Fprintln(env.Err)
		if err != nil {
			return "", fmt.Errorf("cannot read the password from the terminal: %w", err)
		}
		typed[i] = text
	}
	if typed[0] != typed[1] {
		return "", fault.Invalid("the two passwords differ: run the command again")
	}
	return typed[0], nil
}

// unseen reads a line from a terminal, which does not show it, until the context ends.
func unseen(ctx context.Context, terminal int) (string, error) {
	before, err := term.GetState(terminal)
	if err != nil {
		return "", err
	}
	type line struct {
		text []byte
		err  error
	}
	read := make(chan line, 1)
	go func() {
		text, err := term.ReadPassword(terminal)
		read <- line{text, err}
	}()
	select {
	case got := <-read:
		return string(got.text), got.err
	case <-ctx.Done():
		return "", cmp.Or(term.Restore(terminal, before), errInterrupted)
	}
}

// Run creates the user.
func (c *UserCreate) Run(env *Env) error {
	return c.run(env, func(ctx context.Context, admin *Admin, owner company.Company) (answer, error) {
		policies, err := admin.policyIDs(ctx, owner, c.Policy)
		if err != nil {
			return answer{}, err
		}
		wanted := c.request()
		wanted.CompanyID, wanted.Policies = owner.ID, policies
		if wanted.Password, err = c.read(env); err != nil {
			return answer{}, err
		}
		u, err := admin.people(env).Create(ctx, wanted)
		return answerf(viewUser(owner.Slug, u), "Created user %s (%s).\n", u.Email, u.Role), err
	})
}

const maxPasswordLine = 4096 // bytes

func (d *Admin) people(env *Env) account.Users {
	return account.Users{Store: d.Users, Passwords: account.NewPasswords(1), Now: env.Now}
}

// policyIDs finds the policies that are named; none named: nil, which is all.
func (d *Admin) policyIDs(ctx context.Context, owner company.Company, refs []string) ([]string, error) {
	var ids []string
	for _, ref := range refs {
		found, err := d.policy(ctx, owner, ref)
		if err != nil {
			return nil, err
		}
		ids = append(ids, found.ID)
	}
	return ids, nil
}

// UserList lists users.
type UserList struct{ OfCompany }

// Run prints the list.
func (c *UserList) Run(env *Env) error {
	return c.reading(env, func(ctx context.Context, admin *Admin, owner company.Company) (answer, error) {
		users, err := admin.Users.Users(ctx, owner.ID)
		view := func(u account.User) userView { return viewUser(owner.Slug, u) }
		return list(users, view, []string{"ID", "E-MAIL", "NAME", "ROLE", "STATE", "LAST SIGN-IN"}, func(u account.User) []string {
			return []string{u.ID, u.Email, u.Name, string(u.Role), phrase.Either(u.Disabled, "disabled", "enabled"), day(u.LastSignInAt)}
		}), err
	})
}

// oneUser is what commands about one user take.
type oneUser struct {
	OfCompany
	User string `arg:"" help:"The user's e-mail address, name or id."`
}

// change does something to the user and says so. Of a user who is disabled or was deleted (gone), it
// names the API keys that still work.
func (c oneUser) change(env *Env, sentence string, gone bool, work func(people account.Users, ctx context.Context,
	companyID, id string) (account.User, error)) error {
	return c.run(env, on((*Admin).user, c.User, func(ctx context.Context, admin *Admin, owner company.Company, id string) (answer, error) {
		u, err := work(admin.people(env), ctx, owner.ID, id)
		if err != nil || !u.Disabled && !gone {
			return answerf(viewUser(owner.Slug, u), sentence+".\n", u.Email), missing(err, owner.Slug, "user", c.User)
		}
		live, err := admin.keys(env).LiveOf(ctx, u)
		view := goneView{viewUser(owner.Slug, u), slice.Map(live, func(k apikey.Key) string { return k.ID })}
		return answer{view, func(w io.Writer) {
			fmt.Fprintf(w, sentence+".\n", u.Email)
			for _, k := range live {
				fmt.Fprintf(w, "API key %q (%s), which the user made, still works: `muster key revoke --company %s %s` ends it.\n", k.Name,
					k.Prefix, owner.Slug, k.ID)
			}
		}}, err
	}))
}

// UserSetPassword gives a user another password.
type UserSetPassword struct {
	oneUser
	newPassword
}

// Run sets the password.
func (c *UserSetPassword) Run(env *Env) error {
	return c.change(env, "Set the password of %s", false,
		func(people account.Users, ctx context.Context, companyID, id string) (account.User, error) {
			password, err := c.read(env)
			if err != nil {
				return account.User{}, err
			}
			return people.SetPassword(ctx, companyID, id, password)
		})
}

// UserRemovePasskeys takes a user's second factors.
type UserRemovePasskeys struct{ oneUser }

// Run takes them.
func (c *UserRemovePasskeys) Run(env *Env) error {
	return c.change(env, "Removed all passkeys and recovery codes of %s", false,
		func(people account.Users, ctx context.Context, companyID, id string) (account.User, error) {
			return people.Store.RemovePasskeys(ctx, companyID, id)
		})
}

// UserSetRole gives a user a role.
type UserSetRole struct {
	oneUser
	Role string `name:"role" required:"" enum:"admin,manager,operator,viewer" help:"What the user may do: admin, manager, operator or viewer."`
}

// Run sets the role.
func (c *UserSetRole) Run(env *Env) error {
	return c.change(env, "Set the role of %s", false,
		func(people account.Users, ctx context.Context, companyID, id string) (account.User, error) {
			return people.SetRole(ctx, companyID, id, account.Role(c.Role))
		})
}

// UserDisable shuts a user out.
type UserDisable struct{ oneUser }

// Run disables the user.
func (c *UserDisable) Run(env *Env) error {
	return c.change(env, "Disabled user %s", false, account.Users.Disable)
}

// UserEnable lets a user in again.
type UserEnable struct{ oneUser }

// Run enables the user.
func (c *UserEnable) Run(env *Env) error {
	return c.change(env, "Enabled user %s", false, account.Users.Enable)
}

// UserDelete deletes a user.
type UserDelete struct{ oneUser }

// Run deletes the user.
func (c *UserDelete) Run(env *Env) error {
	return c.change(env, "Deleted user %s", true,
		func(people account.Users, ctx context.Context, companyID, id string) (account.User, error) {
			return people.Store.DeleteUser(ctx, companyID, id)
		})
}

// goneView is a user who is disabled or was deleted, with the keys that the user made and
// that still work.
type goneView struct {
	userView
	LiveKeys []string `json:"liveKeys"`
}

type userView struct {
	ID           string               `json:"id"`
	Email        string               `json:"email"`
	Name         string               `json:"name"`
	Role         string               `json:"role"`
	Rights       []string             `json:"rights"`
	Policies     []string             `json:"policies"` // null: all
	Disabled     bool                 `json:"disabled"`
	CreatedAt    *operation.Timestamp `json:"createdAt"`
	LastSignInAt *operation.Timestamp `json:"lastSignInAt"`
}

func viewUser(slug string, u account.User) userView {
	var policies []string
	for _, id := range u.Policies {
		policies = append(policies, resource.Of(slug, resource.Policies, id))
	}
	return userView{ID: u.ID, Email: u.Email, Name: u.Name, Role: string(u.Role), Rights: u.Rights.Names(), Policies: policies,
		Disabled: u.Disabled, CreatedAt: operation.TimestampOf(u.CreatedAt), LastSignInAt: operation.TimestampOf(u.LastSignInAt)}
}
