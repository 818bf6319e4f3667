package contract_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/surface/rest"
)

// What GET /assets answers of both kinds of device is what the OpenAPI document says of
// statusReport and specifications, whatever a device reports under their names.
func TestOpenAPI_StatusReportsHaveTheirSchema(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		acme := env.Company("acme", servertest.Everything())
		tenant := env.NewTenant("globex")
		service := env.Start()
		platform := tenant.Devices(service, servertest.FullyManaged(), 1)[0].AssetID
		tenant.Policy = env.AgentPolicy(tenant.Company, "Agents", "CAMERA=BLOCK", "APPLICATION_REPORT_LEVEL=INSTALLED_APPS",
			"REPORT_DEVICE_SETTINGS=ENABLED",
			"REPORT_DISPLAY_INFO=ENABLED", "REPORT_HARDWARE_STATUS=ENABLED", "REPORT_MEMORY_INFO=ENABLED", "REPORT_NETWORK_INFO=ENABLED",
			"REPORT_POWER_EVENTS=ENABLED", "REPORT_SOFTWARE_INFO=ENABLED", "REPORT_SYSTEM_PROPERTIES=ENABLED", "SCREEN_CAPTURE=BLOCK")
		agent := tenant.AgentDevice(service)
		agent.MustCheckIn()
		agent.MustCheckIn()
		agent.MustCheckIn()
		now := env.Now()
		hostile := json.RawMessage(`{"reportedAt":"` + now.Format(time.RFC3339) +
			`","batteryLevel":"low","policyCompliant":"yes","nonCompliantSince":7,
			"nonComplianceDetails":[{"since":"never"},7,null],
			"applications":[{"packageName":7},{"versionCode":1},{"packageName":"a","versionCode":"1"}],
			"displays":{"width":1},"memoryInfo":[],"deviceSettings":{"adbEnabled":"on","more":1},"systemProperties":{"a":1,"b":"c"},
			"agentErrors":"none","hardwareStatus":{"cpuTemperatures":["hot",1]},"networkInfo":null,"powerEvents":[[]],"state":{},"invented":[1]}`)
		o, err := enrollment.Observation{CompanyID: acme.ID, Device: "enterprises/LC/devices/1", Management: asset.Platform,
			Enrolling: true, EnrolledAt: now,
			ReportedAt: now, ObservedAt: now, StatusReport: hostile,
			Specifications: map[string]string{"invented": "x", "model": "Pixel"}}.Clean(now)
		if err != nil {
			t.Fatal(err)
		}
		odd, err := env.DB().Observe(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}

		schema := schemaAt(t, rest.OpenAPI(service.Registry(), ""), "/components/schemas/AssetView")
		check := func(name, key, path string, members ...string) {
			t.Helper()
			text := servertest.Client{TB: t, URL: service.PublicURL(), Key: key}.Get(path).Want(t, 200).Body
			value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(value); err != nil {
				t.Errorf("%s: %v\n%s", name, err, text)
			}
			var view struct {
				ManagedDevice struct {
					StatusReport map[string]any `json:"statusReport"`
				} `json:"managedDevice"`
			}
			if err := json.Unmarshal(text, &view); err != nil {
				t.Fatal(err)
			}
			for _, member := range members {
				if view.ManagedDevice.StatusReport[member] == nil {
					t.Errorf("%s: the report has no %s: %v", name, member, view.ManagedDevice.StatusReport)
				}
			}
		}
		key := env.Key(tenant.Company, access.All)
		check("platform", key, "/assets/"+platform, "reportedAt", "policyCompliant", "state")
		check("agent", key, "/assets/"+agent.AssetID, "reportedAt", "policyCompliant", "batteryLevel", "applications", "displays",
			"memoryInfo", "nonComplianceDetails")
		check("hostile", env.Key(acme, access.All), "/assets/"+odd.AssetID, "reportedAt", "applications", "invented")
	})
}

// schemaAt compiles the schema at a JSON pointer in an OpenAPI document.
func schemaAt(t *testing.T, document []byte, pointer string) *jsonschema.Schema {
	t.Helper()
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("https://muster.example/openapi.json", parsed); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("https://muster.example/openapi.json#" + pointer)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}
