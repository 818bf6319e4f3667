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
	stepReader
	// BeginInvitation replaces the user's invitations and returns the user;
	// fault.Refused for one who has a way to sign in, or ever signed in.
	BeginInvitation(ctx context.Context, token access.SecretHash, s PendingSignIn) (User, error)
	// AcceptInvitation takes an invitation and sets its user's password; by is
	// who made it. It is fault.NotFound or fault.Refused if it is over, and
	// fault.Forbidden while changes in the portal are stopped.
	AcceptInvitation(ctx context.Context, token access.SecretHash, passwordHash, by string) (User, error)
}

// stepReader shows a step and leaves it; fault.NotFound if it is over.
type stepReader interface {
	Step(ctx context.Context, token access.SecretHash, kind PendingKind) (PendingSignIn, error)
}

// invitedBy returns the user whom an invitation is for, and who made it; fault.Refused if it
// is over.
func invitedBy(ctx context.Context, steps stepReader, users UserStore, token string) (User, string, error) {
	step, err := steps.Step(ctx, access.HashSecret(token), Invitation)
	var data invitationData
	if err == nil {
		err = json.Unmarshal(step.Data, &data)
	}
	var u User
	if err == nil {
		u, err = users.UserByID(ctx, step.CompanyID, step.UserID)
	}
	if fault.CodeOf(err) == fault.NotFound {
		err = errInvitationOver()
	}
	return u, data.By, err
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

// invitationData is the Data of an invitation's step.
type invitationData struct {
	By string `json:"by"` // the name of who made it
}

// Begin returns the token of a new invitation; earlier ones of the user end.
func (s Invitations) Begin(ctx context.Context, by, u User) (string, error) {
	data, err := json.Marshal(invitationData{By: by.Name})
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
	var data invitationData
	if err := json.Unmarshal(step.Data, &data); err != nil {
		return User{}, "", err
	}
	hash, err := s.Passwords.Hash(ctx, password)
	if err != nil {
		return User{}, "", err
	}
	u, err := s.Store.AcceptInvitation(ctx, access.HashSecret(token), hash, data.By)
	if fault.CodeOf(err) == fault.Refused {
		err = fault.New(fault.NotFound, "the invitation is over").Because(err)
	}
	return u, data.By, err
}
