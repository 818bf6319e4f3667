package platform

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"

	"github.com/musterhq/muster/internal/check"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/name"

	androidmanagement "google.golang.org/api/androidmanagement/v1"
)

// notificationTypes are what an enterprise is to tell us.
func notificationTypes() []string {
	return []string{kindEnrollment, kindStatusReport, kindCommand, kindUsageLogs}
}

// StartSignup begins to bind a company to an enterprise: it returns the address
// of the vendor's page on which an administrator signs the company up, and
// which then returns to Config.CallbackURL (see FinishSignup). It fails with
// fault.Refused if the company is bound already, fault.Provider if the vendor
// did not begin.
func (p *Platform) StartSignup(ctx context.Context, companyID string) (address string, err error) {
	owner, err := p.store.Companies.CompanyByID(ctx, companyID)
	if err != nil {
		return "", err
	}
	if owner.Connected() {
		return "", fault.New(fault.Refused, "the company is connected to %s already", owner.Enterprise)
	}
	address, _, err = p.startSignup(ctx, owner)
	return address, err
}

func (p *Platform) startSignup(ctx context.Context, owner company.Company) (address, state string, err error) {
	callback, err := url.Parse(p.cfg.CallbackURL)
	if err != nil || callback.Host == "" {
		return "", "", fault.New(fault.Refused, "the service does not know its public address: set MUSTER_PUBLIC_URL")
	}
	state = name.NewID()
	callback.RawQuery = url.Values{"state": {state}}.Encode()
	var answer *androidmanagement.SignupUrl
	err = p.call(ctx, methodNewSignup, urgent, func(ctx context.Context) (err error) {
		answer, err = p.am.SignupUrls.Create().ProjectId(p.cfg.Project).CallbackUrl(callback.String()).Context(ctx).Do()
		return err
	})
	if err == nil && (answer == nil || answer.Name == "" || answer.Url == "") {
		err = errors.New("platform: the answer names no sign-up")
	}
	if err != nil {
		return "", "", notBound(err)
	}
	return answer.Url, state, p.store.Signups.SaveSignup(ctx, state, owner.ID, answer.Name, answer.Url, p.now())
}

// notBound is the error of a step of binding that the vendor did not take.
func notBound(cause error) error {
	f, ok := errors.AsType[*Failure](cause)
	if !ok {
		return (&fault.Error{Code: fault.Provider, Detail: "the device-management platform gave an answer that cannot be used"}).Because(cause)
	}
	detail := "the device-management platform did not answer as it should: try again"
	retryable := true
	switch f.Came {
	case Refused:
		detail, retryable = "the device-management platform refused: "+quoted(f.Message), false
	case Denied, Missing:
		detail, retryable = "the device-management platform refuses this service: check its credentials and its project (`muster doctor`)", false
	case NotSent:
		detail = "the device-management platform was not asked: " + why(f)
	}
	return (&fault.Error{Code: fault.Provider, Detail: detail, Retryable: retryable}).Because(cause)
}

// FinishSignup ends what StartSignup began, with what the vendor's page brought
// back: it makes the enterprise, binds the company to it and pushes the
// company's policies. It may be called again with the same arguments: a browser
// may come back twice, and a call may have died half-way. It fails with
// fault.NotFound for a state that is not ours, fault.Provider if the vendor
// made no enterprise.
func (p *Platform) FinishSignup(ctx context.Context, state, enterpriseToken string) (company.Company, error) {
	ctx, cancel := p.detached(ctx)
	defer cancel()
	lease, holder := "platform/signup/"+state, newHolder()
	if err := p.await(ctx, lease, holder); err != nil {
		return company.Company{}, err
	}
	defer p.release(ctx, lease, holder)
	companyID, signup, enterprise, err := p.store.Signups.Signup(ctx, state)
	if err != nil {
		return company.Company{}, err
	}
	owner, err := p.store.Companies.CompanyByID(ctx, companyID)
	if err != nil {
		return company.Company{}, err
	}
	if enterprise == "" {
		if err = p.store.Signups.KeepSignupToken(ctx, state, enterpriseToken); err != nil {
			return company.Company{}, err
		}
		if enterprise, err = p.enterprise(ctx, owner, signup, enterpriseToken); err != nil {
			return company.Company{}, err
		}
	}
	if err := p.store.Signups.FinishSignup(ctx, state, enterprise); err != nil {
		return company.Company{}, err
	}
	if owner, err = p.store.Companies.CompanyByID(ctx, companyID); err != nil {
		return company.Company{}, err
	}
	p.pushAll(ctx, owner)
	return owner, nil
}

// OpenSignup returns the company's sign-up that can be gone on with, for
// company.SignupKept; fault.NotFound if there is none.
func (p *Platform) OpenSignup(ctx context.Context, companyID string) (company.Signup, error) {
	return p.store.Signups.OpenSignup(ctx, companyID, p.now().Add(-company.SignupKept))
}

// ResumeSignup finishes a sign-up from which the administrator came back while
// the company could not be bound, as FinishSignup does; fault.Refused if nobody
// came back yet.
func (p *Platform) ResumeSignup(ctx context.Context, companyID string) (company.Company, error) {
	open, err := p.OpenSignup(ctx, companyID)
	if err != nil {
		return company.Company{}, err
	}
	if !open.Returned() {
		return company.Company{}, fault.New(fault.Refused, "the sign-up is not finished at the vendor's page")
	}
	return p.FinishSignup(ctx, open.State, open.Token)
}

// maxDisplayName is the vendor's limit, in characters.
const maxDisplayName = 100

// enterprise makes the enterprise of a sign-up. Its token works once: if it was
// used up by a call whose answer was lost, the enterprise is there and nobody's.
func (p *Platform) enterprise(ctx context.Context, owner company.Company, signup, token string) (string, error) {
	topic, err := p.topic(ctx)
	if err != nil {
		return "", notBound(err)
	}
	request := &androidmanagement.Enterprise{
		EnterpriseDisplayName: check.Clean(owner.Name, maxDisplayName),
		PubsubTopic:           topic, EnabledNotificationTypes: notificationTypes(),
	}
	var answer *androidmanagement.Enterprise
	err = p.call(ctx, methodNewEnterprise, urgent, func(ctx context.Context) (err error) {
		answer, err = p.am.Enterprises.Create(request).ProjectId(p.cfg.Project).SignupUrlName(signup).
			EnterpriseToken(token).Context(ctx).Do()
		return err
	})
	if err == nil && answer != nil && answer.Name != "" {
		return answer.Name, nil
	}
	if result := came(err); result == Refused || result == Unknown || result == Answered {
		if orphan, found := p.orphan(ctx, request.EnterpriseDisplayName); found {
			return orphan, p.adjust(ctx, orphan)
		}
	}
	if err == nil {
		err = errors.New("platform: the answer names no enterprise")
	}
	return "", notBound(err)
}

// orphan finds the one enterprise of the project that bears the name and is no
// company's.
func (p *Platform) orphan(ctx context.Context, displayName string) (string, bool) {
	var orphans []string
	token := ""
	for {
		var answer *androidmanagement.ListEnterprisesResponse
		err := p.call(ctx, methodListEnterprises, urgent, func(ctx context.Context) (err error) {
			answer, err = p.am.Enterprises.List().ProjectId(p.cfg.Project).PageSize(100).PageToken(token).Context(ctx).Do()
			return err
		})
		if err != nil {
			return "", false
		}
		for _, e := range answer.Enterprises {
			if e == nil || e.EnterpriseDisplayName != displayName {
				continue
			}
			if _, err := p.store.Companies.CompanyByEnterprise(ctx, e.Name); fault.CodeOf(err) == fault.NotFound {
				orphans = append(orphans, e.Name)
			}
		}
		if token = answer.NextPageToken; token == "" {
			break
		}
	}
	if slices.Sort(orphans); len(orphans) != 1 {
		return "", false
	}
	return orphans[0], true
}

// adjust makes an enterprise tell us what happens in it.
func (p *Platform) adjust(ctx context.Context, enterprise string) error {
	topic, err := p.topic(ctx)
	if err != nil {
		return notBound(err)
	}
	err = p.call(ctx, methodPatchEnterprise, urgent, func(ctx context.Context) error {
		_, err := p.am.Enterprises.Patch(enterprise, &androidmanagement.Enterprise{
			PubsubTopic: topic, EnabledNotificationTypes: notificationTypes(),
		}).UpdateMask("pubsubTopic,enabledNotificationTypes").Context(ctx).Do()
		return err
	})
	if err != nil {
		return notBound(err)
	}
	return nil
}

// pushAll pushes a company's policies as far as that is possible now; the rest
// is for Pushes.
func (p *Platform) pushAll(ctx context.Context, owner company.Company) {
	for ctx.Err() == nil {
		n, err := p.pushDue(ctx, owner.ID, urgent)
		if err != nil || n < maxPushes {
			return
		}
	}
}

// Connection is what Connect came to.
type Connection struct {
	Company company.Company
	// SignupURL, if not empty, is where an administrator has to go; the company
	// is connected when he has come back from there.
	SignupURL string
}

// Connect binds a company to an enterprise, for the command line. At an
// endpoint of one's own, an emulator, it goes through the sign-up page by
// itself. A company that is connected already is not bound again; its enterprise
// is made to notify us, and its policies are pushed.
func (p *Platform) Connect(ctx context.Context, companyID string) (Connection, error) {
	owner, err := p.store.Companies.CompanyByID(ctx, companyID)
	if err != nil {
		return Connection{}, err
	}
	if owner.Connected() {
		if err := p.adjust(ctx, owner.Enterprise); err != nil {
			return Connection{}, err
		}
		p.pushAll(ctx, owner)
		return Connection{Company: owner}, nil
	}
	address, state, err := p.startSignup(ctx, owner)
	if err != nil || p.cfg.Endpoint == "" {
		return Connection{Company: owner, SignupURL: address}, err
	}
	token, err := p.signUp(ctx, address)
	if err != nil {
		return Connection{}, err
	}
	owner, err = p.FinishSignup(ctx, state, token)
	return Connection{Company: owner}, err
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
