package deploy

import (
	"maps"
	"net"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"

	"waybill/internal/config"
)

// load reads docker-compose.yml as `docker compose` does: against the schema of
// the compose specification, with no variable set.
func load(t *testing.T) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{filepath.Join(root, "docker-compose.yml")})
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(project.Services) == 0 {
		t.Fatal("no services")
	}
	return project
}

// own says whether a service runs an image of this repository.
func own(s types.ServiceConfig) bool { return s.Build != nil }

// once says whether a service is a job that ends.
func once(s types.ServiceConfig) bool { return strings.HasPrefix(s.Restart, "on-failure") }

func TestComposeImagesArePinned(t *testing.T) {
	for name, s := range load(t).Services {
		if !own(s) {
			checkImage(t, name, s.Image)
			continue
		}
		if _, tag, _ := strings.Cut(s.Image, ":"); tag == "" || tag == "latest" {
			t.Errorf("%s: the image built here is called %q", name, s.Image)
		}
		if s.Build.Dockerfile != "deploy/Dockerfile" || stage(t, s.Build.Target) == nil {
			t.Errorf("%s: builds target %q of %s, which is not there", name, s.Build.Target, s.Build.Dockerfile)
		}
	}
}

func TestComposeOpensPortsOnThisMachineOnly(t *testing.T) {
	for name, s := range load(t).Services {
		for _, port := range s.Ports {
			if ip := net.ParseIP(port.HostIP); ip == nil || !ip.IsLoopback() {
				t.Errorf("%s: port %s is open on %q", name, port.Published, port.HostIP)
			}
		}
	}
}

func TestComposeGivesAwayNoRights(t *testing.T) {
	for name, s := range load(t).Services {
		if !slices.Contains(s.SecurityOpt, "no-new-privileges:true") || s.Privileged || s.NetworkMode == "host" {
			t.Errorf("%s: privileges %v, network %q, security %v", name, s.Privileged, s.NetworkMode, s.SecurityOpt)
		}
		if !own(s) {
			continue
		}
		if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || s.CapAdd != nil || !nobody(s.User) {
			t.Errorf("%s: read-only %v, dropped %v, added %v, user %q", name, s.ReadOnly, s.CapDrop, s.CapAdd, s.User)
		}
	}
}

// nobody is a user and a group by number, and not root's.
func nobody(user string) bool { return regexp.MustCompile(`^[1-9]\d*:[1-9]\d*$`).MatchString(user) }

// What runs for good waits for nobody to be healthy: one circle of that and a
// first start never ends. Jobs wait, and nothing waits for a job.
func TestComposeCannotDeadlockAtItsFirstStart(t *testing.T) {
	services := load(t).Services
	for name, s := range services {
		for on, d := range s.DependsOn {
			target := services[on]
			switch {
			case once(target):
				t.Errorf("%s waits for the job %s", name, on)
			case !once(s) && d.Condition != types.ServiceConditionStarted:
				t.Errorf("%s waits for %s to be %s; it can wait by itself", name, on, d.Condition)
			case once(s) && (d.Condition != types.ServiceConditionHealthy || target.HealthCheck == nil):
				t.Errorf("the job %s tries once and waits for %s to be %s (check: %v)", name, on, d.Condition, target.HealthCheck)
			}
		}
	}
}

// Compose stops dependents first: Waybill needs its servers until it has
// written what it knows.
func TestComposeStopsWaybillBeforeItsServers(t *testing.T) {
	waybill := load(t).Services["waybill"]
	for _, server := range []string{"mysql", "temporal"} {
		if _, there := waybill.DependsOn[server]; !there {
			t.Errorf("waybill does not depend on %s, which may stop first", server)
		}
	}
	if waybill.StopGracePeriod == nil || time.Duration(*waybill.StopGracePeriod) < grace(t) {
		t.Errorf("grace period %v, want %v", waybill.StopGracePeriod, grace(t))
	}
}

func TestComposeRestartsAndChecks(t *testing.T) {
	for name, s := range load(t).Services {
		if s.Restart == "" || s.Restart == "no" {
			t.Errorf("%s: no restart policy", name)
		}
		if s.HealthCheck != nil && !s.HealthCheck.Disable && (len(s.HealthCheck.Test) < 2 || s.HealthCheck.StartPeriod == nil) {
			t.Errorf("%s: health check %+v", name, s.HealthCheck)
		}
	}
}

func TestComposeRunsCommandsThatExist(t *testing.T) {
	services := load(t).Services
	for _, name := range []string{"waybill", "migrate"} {
		checkCommand(t, name, services[name].Command)
	}
	test := services["waybill"].HealthCheck.Test
	if len(test) < 3 || test[0] != "CMD" || test[1] != stage(t, "waybill").entrypoint {
		t.Fatalf("health check %v", test)
	}
	checkCommand(t, "health check", test[2:])
}

// Data lives in volumes with names; what comes from the repository is there and
// cannot be written.
func TestComposeMountsWhatIsThere(t *testing.T) {
	for name, s := range load(t).Services {
		for _, v := range s.Volumes {
			if v.Type == types.VolumeTypeVolume && v.Source != "" {
				continue
			}
			if found, _ := filepath.Glob(v.Source); v.Type != types.VolumeTypeBind || !v.ReadOnly || found == nil {
				t.Errorf("%s: mounts %+v", name, v)
			}
		}
	}
}

// variables are a service's, as the process sees them.
func variables(s types.ServiceConfig) map[string]string {
	values := map[string]string{}
	for name, value := range s.Environment {
		if value != nil {
			values[name] = *value
		}
	}
	return values
}

func TestComposeConfiguresWaybillWithoutAWarning(t *testing.T) {
	project := load(t)
	for _, name := range []string{"waybill", "migrate"} {
		getenv, environ := environment(variables(project.Services[name]))
		c, err := config.Load(getenv)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, warning := range append(c.Warnings(), config.Unknown(environ)...) {
			t.Errorf("%s: %s", name, warning)
		}
		for _, address := range []string{c.Herald.DSN.Driver().Addr, c.Ledger.Driver().Addr, c.Temporal.Address} {
			host, _, err := net.SplitHostPort(address)
			if _, there := project.Services[host]; err != nil || !there {
				t.Errorf("%s: nothing is called %s", name, address)
			}
		}
		if ports := project.Services["waybill"].Ports; len(ports) != 1 || c.API.Listen != ":"+ports[0].Published {
			t.Errorf("listens on %s, published %v", c.API.Listen, ports)
		}
		if subnet := project.Networks["inside"].Ipam.Config[0].Subnet; c.Herald.Allow[0].String() != subnet {
			t.Errorf("%s: hooks may reach %s, the receivers are in %s", name, c.Herald.Allow[0], subnet)
		}
	}
}

// The users that the database server makes are those that log in.
func TestComposePasswordsFitTheSQL(t *testing.T) {
	services, sql := load(t).Services, read(t, "deploy/compose/mysql/10-users.sql")
	for _, dsn := range []string{
		variables(services["waybill"])["WAYBILL_HERALD_DSN"], variables(services["waybill"])["WAYBILL_DSN"],
		variables(services["demo"])["DEMO_DSN"],
	} {
		user, rest, _ := strings.Cut(dsn, ":")
		password, _, _ := strings.Cut(rest, "@")
		if !strings.HasPrefix(password, "demo-only-") || !strings.Contains(sql, "CREATE USER '"+user+"'@'%' IDENTIFIED BY '"+password+"';") {
			t.Errorf("the SQL makes no user for %s", dsn)
		}
	}
	server, database := variables(services["temporal"]), variables(services["temporal-db"])
	if server["POSTGRES_PWD"] != database["POSTGRES_PASSWORD"] || server["POSTGRES_USER"] != database["POSTGRES_USER"] || server["POSTGRES_SEEDS"] != "temporal-db" {
		t.Error("Temporal does not log in to its database")
	}
}

func TestComposeTellsTheDemoWhatItReads(t *testing.T) {
	read := slices.Sorted(slices.Values(regexp.MustCompile(`DEMO_[A-Z_]+`).FindAllString(demoSettings(t), -1)))
	read = slices.Compact(read)
	demo := load(t).Services["demo"]
	if given := slices.Sorted(maps.Keys(variables(demo))); !slices.Equal(given, read) {
		t.Errorf("given %v, read %v", given, read)
	}
	if listen := variables(demo)["DEMO_LISTEN"]; !strings.HasPrefix(listen, demo.Hostname+":") {
		t.Errorf("listens on %s, is called %q", listen, demo.Hostname)
	}
}

// demoSettings is the function of test/demo that reads them.
func demoSettings(t *testing.T) string {
	t.Helper()
	_, after, found := strings.Cut(read(t, "test/demo/main.go"), "func read(")
	if !found {
		t.Fatal("test/demo reads its settings elsewhere")
	}
	body, _, _ := strings.Cut(after, "\n}")
	return body
}

// Every key of the server's settings is one that the development server runs
// with: the server takes a mistyped one without a word.
func TestComposeSetsTemporalKeysThatAreInUse(t *testing.T) {
	keys := regexp.MustCompile(`(?m)^([a-z][A-Za-z.]+):`).FindAllStringSubmatch(read(t, "deploy/compose/temporal/dynamicconfig.yaml"), -1)
	if keys == nil {
		t.Fatal("no keys")
	}
	used := read(t, "internal/devstack/temporal.go")
	for _, key := range keys {
		if !strings.Contains(used, `"`+key[1]+"=") {
			t.Errorf("%s is not among the development server's settings", key[1])
		}
	}
	service := load(t).Services["temporal"]
	if file := variables(service)["DYNAMIC_CONFIG_FILE_PATH"]; !slices.ContainsFunc(service.Volumes, func(v types.ServiceVolumeConfig) bool {
		return v.Target == "/etc/temporal/"+file
	}) {
		t.Errorf("nothing is mounted at %s", file)
	}
}
