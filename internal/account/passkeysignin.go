package account

import (
	"context"
	"encoding/json"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
)

// challenge is a passkey challenge of the sign-in page. It is sealed into the
// page: strangers who open the page leave nothing behind in the database.
type challenge struct {
	State     json.RawMessage `json:"s"`
	ExpiresAt time.Time       `json:"e"`
}

const purposeChallenge = "passkey challenge of the sign-in page"

// BeginSignIn begins to sign in with a passkey alone.
func (s Passkeys) BeginSignIn() (Challenge, error) {
	if s.Ceremonies == nil {
		return Challenge{}, s.unavailable()
	}
	options, state, err := s.Ceremonies.BeginSignIn()
	if err != nil {
		return Challenge{}, err
	}
	token, err := sealText(s.Sealer, purposeChallenge, challenge{state, s.Now().Add(PendingLife)})
	return Challenge{Token: token, Options: options}, err
}

// FinishSignIn returns the user whose passkey answered. It fails with
// fault.Unauthorized for an answer that proves nothing, fault.Refused for a
// challenge that is over or was answered before.
func (s Passkeys) FinishSignIn(ctx context.Context, token string, answer json.RawMessage) (user User, err error) {
	if s.Ceremonies == nil {
		return User{}, s.unavailable()
	}
	late := fault.New(fault.Refused, "this took too long or was done already: try again")
	var c challenge
	if err := openText(s.Sealer, purposeChallenge, token, &c); err != nil || !pends(c.ExpiresAt, s.Now()) {
		return User{}, late
	}
	p, once, err := s.Ceremonies.FinishSignIn(c.State, answer, func(id string) (u User, known []Passkey, err error) {
		if user, err = s.Owner(ctx, id); err != nil {
			return u, nil, err
		}
		known, err = s.Store.Passkeys(ctx, user.ID)
		return user, known, err
	})
	if err != nil {
		return User{}, err
	}
	if user.Disabled {
		return User{}, fault.New(fault.Unauthorized, "the account is disabled")
	}
	// Only one of two answers to a challenge can save this step.
	err = s.Steps.SaveStep(ctx, access.HashSecret("challenge:"+once),
		PendingSignIn{Kind: UsedChallenge, CompanyID: user.CompanyID, UserID: user.ID,
			Data: json.RawMessage("{}"), ExpiresAt: c.ExpiresAt.Add(time.Minute)})
	if fault.CodeOf(err) == fault.Refused {
		return User{}, late
	}
	if err != nil {
		return User{}, err
	}
	p.LastUsedAt = s.now()
	return user, s.Store.UsePasskey(ctx, p)
}
