package platform

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	androidmanagement "google.golang.org/api/androidmanagement/v1"
	"google.golang.org/api/pubsub/v1"

	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/provisioning"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/wait"
)

// What is used when an endpoint is set and nothing else: the names that exist
// in a fresh emulator.
const (
	DefaultProject      = "muster"
	DefaultTopic        = "device-management"
	DefaultSubscription = "device-management-muster"
)

// The limits of one call, unless the configuration says otherwise.
const (
	DefaultCallTimeout = 25 * time.Second
	DefaultPullTimeout = 95 * time.Second
)

// DefaultQuota is what the vendor allows one project in QuotaWindow.
const DefaultQuota = 1000

// QuotaWindow is the time in which a project's queries are counted.
const QuotaWindow = 100 * time.Second

// Config is what a Platform is made from.
type Config struct {
	// Endpoint is the address of the vendor's API and of Pub/Sub; empty: the
	// real ones. An endpoint is called without authentication unless
	// credentials are given.
	Endpoint string
	// Credentials is a service account's key in JSON; if empty, it is read from
	// CredentialsFile. With neither and no endpoint, every call fails with
	// Denied and nothing is pulled.
	Credentials     []byte
	CredentialsFile string
	// Project is the vendor's project: that of the credentials if empty.
	// Topic and Subscription are bare names or full ones
	// ("projects/P/subscriptions/S"); the topic is the subscription's if empty.
	Project, Topic, Subscription string

	// CallbackURL is where the vendor's sign-up page returns to:
	// a page of the service that calls FinishSignup.
	CallbackURL string

	// Transport carries the calls; nil: HTTP/1.1 over TCP with proxies from
	// the environment.
	Transport http.RoundTripper
	// CallTimeout limits one call, its token included; PullTimeout one pull of
	// notifications, which the vendor answers late when there are none.
	CallTimeout, PullTimeout time.Duration
	// Quota is how many queries the vendor allows the project in QuotaWindow;
	// negative: no limit of our own, which is the default for an endpoint.
	Quota int

	Now      func() time.Time
	Logger   *slog.Logger // nil: silent
	Observer Observer     // nil: none

	Stores Stores
	// Schedule is how often the reconcilers look; zero members have defaults.
	Schedule Schedule
}

// Platform speaks to the vendor for all companies of the service.
type Platform struct {
	cfg    Config
	log    *slog.Logger
	now    func() time.Time
	http   *http.Client
	token  func() (string, error)
	am     *androidmanagement.Service
	pubsub *pubsub.Service
	seen   Observer
	store  Stores
	holder string // this replica's name in the leases of loops
	pulls  wait.Trouble

	strangers strangers
}

var (
	_ command.Channel     = (*Platform)(nil)
	_ provisioning.Issuer = (*Platform)(nil)
)

// New makes a Platform. It makes no call; it fails if the credentials cannot be
// read or are not a service account's.
func New(cfg Config) (*Platform, error) {
	if cfg.Now == nil {
		return nil, errors.New("platform: Config.Now is missing: give it a clock")
	}
	token, project, err := newToken(&cfg)
	if err != nil {
		return nil, err
	}
	cfg.complete(project)
	p := &Platform{
		cfg: cfg, now: cfg.Now, store: cfg.Stores, token: token,
		log: cfg.Logger, seen: cfg.Observer,
		holder: resource.NewLeaseHolder("platform"),
	}
	if err := p.connect(); err != nil {
		return nil, fmt.Errorf("platform: %w", err)
	}
	return p, nil
}

func (c *Config) complete(project string) {
	c.Endpoint = strings.TrimRight(c.Endpoint, "/")
	c.Project = cmp.Or(c.Project, project)
	if c.Endpoint != "" {
		c.Project = cmp.Or(c.Project, DefaultProject)
		c.Topic = cmp.Or(c.Topic, DefaultTopic)
		c.CallbackURL = cmp.Or(c.CallbackURL, "http://localhost/connect/callback")
		c.Quota = cmp.Or(c.Quota, -1)
	}
	if c.Topic != "" {
		c.Topic = within("projects/"+c.Project+"/topics/", c.Topic)
	}
	c.Subscription = within("projects/"+c.Project+"/subscriptions/", cmp.Or(c.Subscription, DefaultSubscription))
	c.CallTimeout = cmp.Or(c.CallTimeout, DefaultCallTimeout)
	c.PullTimeout = cmp.Or(c.PullTimeout, DefaultPullTimeout)
	c.Quota = cmp.Or(c.Quota, DefaultQuota)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	c.Observer = cmp.Or(c.Observer, Observer(unobserved{}))
	c.Schedule.complete()
}

// within returns the full name of something that may be named in full already.
func within(parent, name string) string {
	if strings.Contains(name, "/") {
		return name
	}
	return parent + name
}

// configured reports whether there is a platform to speak to.
func (c *Config) configured() bool {
	return c.Endpoint != "" || len(c.Credentials) > 0
}

// readCredentials brings the credentials into the configuration.
func (c *Config) readCredentials() error {
	if len(c.Credentials) > 0 || c.CredentialsFile == "" {
		return nil
	}
	text, err := os.ReadFile(c.CredentialsFile)
	if err != nil {
		return fmt.Errorf("platform: credentials: %w: give the path of a service account's key file", err)
	}
	c.Credentials = text
	return nil
}
