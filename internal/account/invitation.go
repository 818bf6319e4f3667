package account

import (
	"context"
	"encoding/json"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
)

// InvitationStore keeps invitations. Each method decides and records in one
// transaction.
type InvitationStore interface {
	// Step returns a step of a sign-in, and leaves it as it is; fault.NotFound if it is over.
	Step(ctx context.Context, token access.SecretHash, kind PendingKind) (PendingSignIn, error)
	// BeginInvitation replaces the user's invitations and returns the user;
	// fault.Refused for one who has a way to sign in, or ever signed in, fault.NotFound without
	// such a user.
	BeginInvitation(ctx context.Context, token access.SecretHash, s PendingSignIn) (User, error)
	// AcceptInvitation takes an invitation and sets its user's password. It is
	// fault.NotFound or fault.Refused if it is over, and fault.Forbidden while
	// changes in the portal are stopped.
	AcceptInvitation(ctx context.Context, token access.SecretHash, passwordHash string, by Inviter) (User, error)
}

// invitedBy returns the user whom an invitation is for, and who made it; fault.Refused if it
// is over.
func invitedBy(ctx context.Context, steps PendingStore, users UserStore, token string) (u User, by Inviter, err error) {
	step, err := steps.Step(ctx, access.HashSecret(token), Invitation)
	if err == nil {
		err = json.Unmarshal(step.Data, &by)
	}
	if err == nil {
		u, err = users.UserByID(ctx, step.CompanyID, step.UserID)
	}
	if fault.CodeOf(err) == fault.NotFound {
		err = errInvitationOver()
	}
	return u, by, err
}

func errInvitationOver() error {
	return fault.New(fault.Refused, "this invitation is over or was used already: ask for a new one")
}

// Invitations let users set their first password.
type Invitations struct {
	Store     InvitationStore
	Passwords *Passwords
	Now       func() time.Time
	// Mail seals a token, so that the service sends the link by mail; nil: it sends none.
	Mail func(token string) []byte
}

// Inviter made an invitation, which is kept as a PendingSignIn with the Inviter as its Data. The invitation is over
// when the inviter may no longer invite.
type Inviter struct {
	ID   string `json:"id"` // of the user; empty: the invitation is from before it was kept
	Name string `json:"by"`
}

// Begin returns the token of a new invitation; earlier ones of the user end.
func (s Invitations) Begin(ctx context.Context, by, u User) (string, error) {
	data, err := json.Marshal(Inviter{by.ID, by.Name})
	if err != nil {
		return "", err
	}
	token := access.NewSecret("mst_")
	step := PendingSignIn{Kind: Invitation, CompanyID: u.CompanyID, UserID: u.ID, Data: data, ExpiresAt: s.Now().Add(InvitationLife)}
	if s.Mail != nil {
		step.Letter = s.Mail(token)
	}
	_, err = s.Store.BeginInvitation(ctx, access.HashSecret(token), step)
	return token, err
}

// Accept sets the password of the invited user, and returns the user and the
// name of who made the invitation. fault.NotFound means that it is over.
func (s Invitations) Accept(ctx context.Context, token, password string) (User, string, error) {
	step, err := s.Store.Step(ctx, access.HashSecret(token), Invitation)
	if err != nil {
		return User{}, "", err
	}
	var by Inviter
	if err := json.Unmarshal(step.Data, &by); err != nil {
		return User{}, "", err
	}
	hash, err := s.Passwords.Hash(ctx, password)
	if err != nil {
		return User{}, "", err
	}
	u, err := s.Store.AcceptInvitation(ctx, access.HashSecret(token), hash, by)
	if fault.CodeOf(err) == fault.Refused {
		err = fault.New(fault.NotFound, "the invitation is over").Because(err)
	}
	return u, by.Name, err
}
