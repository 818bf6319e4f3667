package platform

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	androidmanagement "google.golang.org/api/androidmanagement/v1"

	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/outcome"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/validate"
)

// notificationTypes are what an enterprise is to tell us.
func notificationTypes() []string {
	return []string{kindEnrollment, kindStatusReport, kindCommand, kindUsageLogs}
}

// StartSignup begins to bind a company to an enterprise: it returns the address
// of the vendor's page on which an administrator signs the company up, and
// which then returns to Config.CallbackURL (see FinishSignup). session is the id
// of the session of the portal that begins it. It fails with fault.Refused if
// the company is bound already or being deleted, fault.Provider if the vendor did not
// begin.
func (p *Platform) StartSignup(ctx context.Context, companyID, session string) (address string, err error) {
	owner, err := p.store.Companies.CompanyByID(ctx, companyID)
	if err != nil {
		return "", err
	}
	signup, err := p.startSignup(ctx, owner, session)
	return signup.Address, err
}

func (p *Platform) startSignup(ctx context.Context, owner company.Company, session string) (company.Signup, error) {
	if owner.Connected() {
		return company.Signup{}, alreadyConnected(owner)
	}
	callback, err := url.Parse(p.cfg.CallbackURL)
	if err != nil || callback.Host == "" {
		return company.Signup{}, fault.New(fault.Refused, "the service does not know its public address: set MUSTER_PUBLIC_URL")
	}
	state := resource.NewID()
	callback.RawQuery = url.Values{"state": {state}}.Encode()
	answer, err := ask(ctx, p, methodNewSignup, urgent, p.am.SignupUrls.Create().ProjectId(p.cfg.Project).CallbackUrl(callback.String()))
	if err == nil && (answer == nil || answer.Name == "" || answer.Url == "") {
		err = errors.New("platform: the answer names no sign-up")
	}
	if err != nil {
		return company.Signup{}, notBound(err)
	}
	signup := company.Signup{State: state, CompanyID: owner.ID, Session: session, Name: answer.Name, Address: answer.Url, Begun: p.now()}
	return signup, p.store.Signups.SaveSignup(ctx, signup)
}

func alreadyConnected(owner company.Company) error {
	return fault.New(fault.Refused, "the company is connected to %s already", owner.Enterprise)
}

// notBound is the error of a step of binding that the vendor did not take.
func notBound(cause error) error {
	f, ok := errors.AsType[*Failure](cause)
	if !ok {
		return (&fault.Error{Code: fault.Provider, Detail: "the device-management platform gave an answer that cannot be used"}).Because(
			cause)
	}
	detail := "the device-management platform did not answer as it should: try again"
	retryable := true
	switch f.Code {
	case outcome.Refused:
		detail, retryable = "the device-management platform refused: "+quoted(f.Message), false
	case outcome.Denied, outcome.Missing:
		detail, retryable = "the device-management platform refuses this service: check its credentials and its project (`muster doctor`)",
			false
	case outcome.NotSent:
		detail = "the device-management platform was not asked: " + why(f)
	default: // it may pass: asked again later
	}
	return (&fault.Error{Code: fault.Provider, Detail: detail, Retryable: retryable}).Because(cause)
}

// Signup returns the sign-up with a state; fault.NotFound if there is none.
// A state that cannot be one of ours is not looked up.
func (p *Platform) Signup(ctx context.Context, state string) (company.Signup, error) {
	if !resource.IsID(state) {
		return company.Signup{}, fault.New(fault.NotFound, "there is no such sign-up")
	}
	return p.store.Signups.Signup(ctx, state)
}

// KeepSignupToken keeps what the vendor's page brought back, for ResumeSignup.
func (p *Platform) KeepSignupToken(ctx context.Context, state, enterpriseToken string) error {
	return p.store.Signups.KeepSignupToken(ctx, state, enterpriseToken)
}

// FinishSignup ends what StartSignup began, with what the vendor's page brought
// back: it makes the enterprise, binds the company to it and pushes the
// company's policies; pushed is how many of them the vendor has now. It may be
// called again with the same arguments: a browser may come back twice, and a
// call may have died half-way. It fails with fault.NotFound for a state that is
// not ours, fault.Provider if the vendor made no enterprise.
func (p *Platform) FinishSignup(ctx context.Context, state, enterpriseToken string) (owner company.Company, pushed int, err error) {
	// The lease is named by the state, so strangers must not choose it.
	if _, err := p.Signup(ctx, state); err != nil {
		return company.Company{}, 0, err
	}
	ctx, cancel := p.detached(ctx)
	defer cancel()
	lease, holder := "platform/signup/"+state, resource.NewLeaseHolder("platform")
	if err := p.await(ctx, lease, holder); err != nil {
		return company.Company{}, 0, err
	}
	defer p.release(ctx, lease, holder)
	signup, err := p.Signup(ctx, state)
	if err != nil {
		return company.Company{}, 0, err
	}
	if owner, err = p.store.Companies.CompanyByID(ctx, signup.CompanyID); err != nil {
		return company.Company{}, 0, err
	}
	if signup.Enterprise == "" {
		if owner, err = p.bind(ctx, owner, &signup, enterpriseToken); err != nil {
			return company.Company{}, 0, err
		}
	}
	p.rename(ctx, owner, signup)
	return owner, p.pushAll(ctx, owner), nil
}

// bind makes the enterprise of a sign-up and binds the company to it.
func (p *Platform) bind(ctx context.Context, owner company.Company, signup *company.Signup, token string) (company.Company, error) {
	if owner.Connected() {
		return company.Company{}, alreadyConnected(owner)
	}
	if err := p.store.Signups.KeepSignupToken(ctx, signup.State, token); err != nil {
		return company.Company{}, err
	}
	enterprise, err := p.enterprise(ctx, owner, signup, token)
	if err != nil {
		return company.Company{}, err
	}
	if err := p.store.Signups.FinishSignup(ctx, signup.State, enterprise); err != nil {
		return company.Company{}, err
	}
	return p.store.Companies.CompanyByID(ctx, owner.ID)
}

// OpenSignup returns the company's sign-up that can be gone on with, for
// company.SignupKept; fault.NotFound if there is none.
func (p *Platform) OpenSignup(ctx context.Context, companyID string) (company.Signup, error) {
	return p.store.Signups.OpenSignup(ctx, companyID, p.now().Add(-company.SignupKept))
}

// ResumeSignup finishes a sign-up from which the administrator returned while
// the company could not be bound, as FinishSignup does; fault.Refused if the
// administrator has not returned yet.
func (p *Platform) ResumeSignup(ctx context.Context, companyID string) (owner company.Company, pushed int, err error) {
	open, err := p.OpenSignup(ctx, companyID)
	if err != nil {
		return company.Company{}, 0, err
	}
	if !open.Returned() {
		return company.Company{}, 0, fault.New(fault.Refused, "the sign-up is not finished at the vendor's page")
	}
	return p.FinishSignup(ctx, open.State, open.Token)
}

// maxDisplayName is the vendor's limit, in characters.
const maxDisplayName = 100

// markedName is the display name of an enterprise that is being made: it ends
// in the nonce of its sign-up, by which the enterprise is found again if the
// answer is lost. A list of enterprises shows nothing but the display name, and
// that of another enterprise may be any company's.
func markedName(owner company.Company, nonce string) string {
	mark := " (sign-up " + nonce + ")"
	return validate.Clean(owner.Name, maxDisplayName-len(mark)) + mark
}

// enterprise makes the enterprise of a sign-up. Its token works once: if it was
// used up by a call whose answer was lost, the enterprise exists and belongs to
// no company. The nonce is stored before the call, and removed if the vendor
// certainly made nothing. So a stored nonce says that an earlier call may have
// made the enterprise, and only then is it looked for.
func (p *Platform) enterprise(ctx context.Context, owner company.Company, signup *company.Signup, token string) (string, error) {
	topic, err := p.topic(ctx)
	if err != nil {
		return "", notBound(err)
	}
	lost := signup.Nonce != ""
	if !lost {
		signup.Nonce = rand.Text()
		if err := p.store.Signups.SetSignupNonce(ctx, signup.State, signup.Nonce); err != nil {
			return "", err
		}
	}
	request := &androidmanagement.Enterprise{
		EnterpriseDisplayName: markedName(owner, signup.Nonce),
		PubsubTopic:           topic, EnabledNotificationTypes: notificationTypes(),
	}
	answer, err := ask(ctx, p, methodNewEnterprise, urgent,
		p.am.Enterprises.Create(request).ProjectId(p.cfg.Project).SignupUrlName(signup.Name).
			EnterpriseToken(token))
	if err == nil && answer != nil && answer.Name != "" {
		return answer.Name, nil
	}
	result := codeOf(err)
	err = cmp.Or(err, errors.New("platform: the answer names no enterprise"))
	if !lost && result != outcome.Unknown && result != outcome.Done {
		return "", errors.Join(notBound(err), p.store.Signups.SetSignupNonce(ctx, signup.State, ""))
	}
	if orphan, found := p.orphan(ctx, signup.Nonce); found {
		return orphan, p.adjust(ctx, orphan)
	}
	return "", notBound(err)
}

// orphan finds the enterprise that a sign-up made, by its nonce.
func (p *Platform) orphan(ctx context.Context, nonce string) (string, bool) {
	listed, _ := p.displayNames(ctx, urgent) // without a list it is not found
	for enterprise, displayName := range listed {
		if strings.HasSuffix(displayName, " "+nonce+")") {
			return enterprise, true
		}
	}
	return "", false
}

// rename removes the nonce from the display name of a company's enterprise. It
// is done after the company is bound: until then the nonce is all by which the
// enterprise can be found. What fails here is tried again by Inventories.
func (p *Platform) rename(ctx context.Context, owner company.Company, signup company.Signup) {
	if signup.Nonce == "" || !owner.Connected() {
		return
	}
	_, err := ask(ctx, p, methodPatchEnterprise, urgent, p.am.Enterprises.Patch(owner.Enterprise, &androidmanagement.Enterprise{
		EnterpriseDisplayName: validate.Clean(owner.Name, maxDisplayName),
	}).UpdateMask("enterpriseDisplayName"))
	if err == nil {
		err = p.store.Signups.SetSignupNonce(ctx, signup.State, "")
	}
	if err != nil {
		p.log.WarnContext(ctx, "cannot rename an enterprise", slog.String("enterprise", owner.Enterprise), slog.Any("error", err))
	}
}

// renameLater renames a company's enterprise if its display name still has a
// nonce.
func (p *Platform) renameLater(ctx context.Context, owner company.Company) error {
	signups, err := p.store.Signups.MarkedSignups(ctx, owner.ID)
	for _, signup := range signups {
		p.rename(ctx, owner, signup)
	}
	return err
}

// adjust makes an enterprise tell us what happens in it.
func (p *Platform) adjust(ctx context.Context, enterprise string) error {
	topic, err := p.topic(ctx)
	if err != nil {
		return notBound(err)
	}
	_, err = ask(ctx, p, methodPatchEnterprise, urgent, p.am.Enterprises.Patch(enterprise, &androidmanagement.Enterprise{
		PubsubTopic: topic, EnabledNotificationTypes: notificationTypes(),
	}).UpdateMask("pubsubTopic,enabledNotificationTypes"))
	if err != nil {
		return notBound(err)
	}
	return nil
}

// pushAll pushes a company's policies as far as that is possible now, and says
// how many the vendor took; the rest is for Pushes.
func (p *Platform) pushAll(ctx context.Context, owner company.Company) (pushed int) {
	for ctx.Err() == nil {
		n, done, err := p.pushDue(ctx, owner.ID, urgent)
		pushed += done
		if err != nil || n < maxPushes {
			break
		}
	}
	return pushed
}

// Connect binds a company to an enterprise, for the command line. At an
// endpoint of one's own, an emulator, it goes through the sign-up page by
// itself. A company that is connected already is not bound again; its enterprise
// is made to notify us, and its policies are pushed. signupPage, if not empty, is
// where an administrator has to go; the company is connected when he has come
// back from there.
func (p *Platform) Connect(ctx context.Context, companyID string) (owner company.Company, signupPage string, err error) {
	if owner, err = p.store.Companies.CompanyByID(ctx, companyID); err != nil {
		return company.Company{}, "", err
	}
	if owner.Connected() {
		if err := p.adjust(ctx, owner.Enterprise); err != nil {
			return company.Company{}, "", err
		}
		p.pushAll(ctx, owner)
		return owner, "", nil
	}
	signup, err := p.startSignup(ctx, owner, "")
	if err != nil || p.cfg.Endpoint == "" {
		return owner, signup.Address, err
	}
	token, err := p.signUp(ctx, signup.Address)
	if err != nil {
		return company.Company{}, "", err
	}
	owner, _, err = p.FinishSignup(ctx, signup.State, token)
	return owner, "", err
}

// signUp confirms an emulator's sign-up page and takes the enterprise token
// from where the page then leads.
func (p *Platform) signUp(ctx context.Context, page string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.CallTimeout)
	defer cancel()
	unusable := fault.New(fault.Provider, "the sign-up page of the platform's emulator cannot be gone through: open %s in a browser", page)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, page, nil)
	if err != nil {
		return "", unusable.Because(err)
	}
	response, err := p.http.Do(request)
	if err != nil {
		return "", unusable.Because(err)
	}
	defer response.Body.Close()
	back, err := response.Location()
	if err != nil || back.Query().Get("enterpriseToken") == "" {
		return "", unusable.Because(err)
	}
	return back.Query().Get("enterpriseToken"), nil
}
