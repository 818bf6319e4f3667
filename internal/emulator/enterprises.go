package emulator

import (
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	am "google.golang.org/api/androidmanagement/v1"
)

var topicForm = regexp.MustCompile(`^projects/[^/]+/topics/[^/]+$`)

func createEnterprise(e *Emulator, c *call, resource *am.Enterprise) (any, error) {
	project := c.query.Get("projectId")
	if project == "" {
		return nil, invalid("Project ID must be specified.")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.checkEnterprise(resource); err != nil {
		return nil, err
	}
	kind, err := e.redeemSignup(c, project)
	if err != nil {
		return nil, err
	}
	id := "LC" + randomText(9, lowerDigits)
	resource.Name = "enterprises/" + id
	resource.EnterpriseType = "MANAGED_GOOGLE_PLAY_ACCOUNTS_ENTERPRISE"
	resource.ManagedGooglePlayAccountsEnterpriseType = kind
	n := &enterprise{ID: id, Project: project, Resource: resource, Policies: map[string]*policy{}, Tokens: map[string]*token{}}
	e.world.Enterprises[id] = n
	e.touch()
	e.announceTopic(n)
	return resource, nil
}

// redeemSignup uses up the enterprise token of a completed sign-up and gives the
// kind of the enterprise. An enterprise that the device-management vendor
// manages itself needs no sign-up, only the agreement.
func (e *Emulator) redeemSignup(c *call, project string) (string, error) {
	name, enterpriseToken := c.query.Get("signupUrlName"), c.query.Get("enterpriseToken")
	if name == "" && enterpriseToken == "" {
		if c.query.Get("agreementAccepted") == "true" {
			return "EMM_MANAGED", nil
		}
		return "", invalid("Either signupUrlName and enterpriseToken, or agreementAccepted must be specified.")
	}
	s := e.world.Signups[strings.TrimPrefix(name, "signupUrls/")]
	switch {
	case s == nil || s.name() != name:
		return "", notFound()
	case s.Project != project:
		return "", usual(http.StatusForbidden)
	case s.Token == "" || s.Token != enterpriseToken || s.Redeemed:
		return "", invalid("The enterprise token is not valid.")
	}
	s.Redeemed = true
	return "CUSTOMER_MANAGED", nil
}

func (e *Emulator) checkEnterprise(r *am.Enterprise) error {
	if utf8.RuneCountInString(r.EnterpriseDisplayName) > 100 {
		return invalid("Enterprise display name must be at most 100 characters long.")
	}
	if r.PubsubTopic == "" {
		if len(r.EnabledNotificationTypes) > 0 {
			return invalid("Pub/Sub topic must be specified if notifications are enabled.")
		}
		return nil
	}
	if !topicForm.MatchString(r.PubsubTopic) {
		return invalid("Pub/Sub topic must be in the form projects/{project}/topics/{topic}.")
	}
	if e.settings.StrictPubSub && !e.broker.HasTopic(r.PubsubTopic) {
		return invalid("Unable to publish to the Pub/Sub topic %s. Grant the publisher role to "+
			"android-cloud-policy@system.gserviceaccount.com.", r.PubsubTopic)
	}
	return nil
}

func getEnterprise(_ *Emulator, _ *call, n *enterprise) (any, error) { return n.Resource, nil }

func listEnterprises(e *Emulator, c *call) (any, error) {
	project := c.query.Get("projectId")
	if project == "" {
		return nil, invalid("Project ID must be specified.")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	var found []*enterprise
	for _, id := range slices.Sorted(maps.Keys(e.world.Enterprises)) {
		if n := e.world.Enterprises[id]; n.Project == project {
			found = append(found, n)
		}
	}
	part, next, err := page(c, found, (*enterprise).name, func(n *enterprise) *am.Enterprise {
		return &am.Enterprise{Name: n.name(), EnterpriseDisplayName: n.Resource.EnterpriseDisplayName}
	}, 100, 100)
	return &am.ListEnterprisesResponse{Enterprises: part, NextPageToken: next}, err
}

func patchEnterprise(e *Emulator, c *call, n *enterprise) (any, error) {
	fixed := []string{"name", "enterpriseType", "managedGoogleDomainType", "managedGooglePlayAccountsEnterpriseType"}
	old, err := toTree(n.Resource)
	if err != nil {
		return nil, err
	}
	next := c.body
	if mask := c.query.Get("updateMask"); mask != "" {
		paths, err := parseMask(e.management, "Enterprise", mask, fixed...)
		if err != nil {
			return nil, err
		}
		next = maps.Clone(old)
		applyMask(next, c.body, paths)
	}
	for _, name := range fixed {
		next[name] = old[name]
	}
	resource := &am.Enterprise{}
	if err := fromTree(next, resource); err != nil {
		return nil, err
	}
	if err := e.checkEnterprise(resource); err != nil {
		return nil, err
	}
	moved := resource.PubsubTopic != n.Resource.PubsubTopic
	n.Resource = resource
	e.touch()
	if moved {
		e.announceTopic(n)
	}
	return resource, nil
}

func deleteEnterprise(e *Emulator, _ *call, n *enterprise) (any, error) {
	delete(e.world.Enterprises, n.ID)
	for _, t := range n.Tokens {
		delete(e.world.byValue, t.Resource.Value)
	}
	for _, d := range n.Devices {
		d.Deleted = true
		delete(e.world.byDevice, d.ID)
	}
	e.touch()
	return empty{}, nil
}
