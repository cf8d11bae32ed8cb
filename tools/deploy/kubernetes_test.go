package deploy

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	security "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"waybill/api"
	"waybill/internal/config"
	"waybill/internal/egress"
)

// The pod passes the restricted profile in the words of the cluster's own
// admission, and the namespace demands it.
func TestThePodIsRestricted(t *testing.T) {
	c := render(t)
	if level := c.namespace.Labels["pod-security.kubernetes.io/enforce"]; level != string(security.LevelRestricted) {
		t.Errorf("the namespace enforces %q", level)
	}
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	template := c.deployment.Spec.Template
	for _, result := range evaluator.EvaluatePod(
		security.LevelVersion{Level: security.LevelRestricted, Version: security.LatestVersion()}, &template.ObjectMeta, &template.Spec) {
		if !result.Allowed {
			t.Errorf("%s: %s", result.ForbiddenReason, result.ForbiddenDetail)
		}
	}
}

// What no profile asks for: a file system that cannot be written, no token of
// the cluster, no variables that the cluster makes up.
func TestThePodHasNothingItDoesNotNeed(t *testing.T) {
	c := render(t)
	spec, container := c.pod(t)
	if s := container.SecurityContext; s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem {
		t.Error("the root file system can be written")
	}
	if spec.ServiceAccountName != c.account.Name {
		t.Errorf("account %q", spec.ServiceAccountName)
	}
	for where, token := range map[string]*bool{"pod": spec.AutomountServiceAccountToken, "account": c.account.AutomountServiceAccountToken} {
		if token == nil || *token {
			t.Errorf("%s: mounts a token", where)
		}
	}
	// A Service called waybill would set WAYBILL_PORT and others.
	if spec.EnableServiceLinks == nil || *spec.EnableServiceLinks {
		t.Error("the cluster adds WAYBILL_* variables of its own")
	}
	if user := strings.SplitN(stage(t, "waybill").user, ":", 2)[0]; strconv.FormatInt(*spec.SecurityContext.RunAsUser, 10) != user {
		t.Errorf("runs as %d, the image as %s", *spec.SecurityContext.RunAsUser, user)
	}
}

func TestThePodRunsAPinnedImageAndAKnownCommand(t *testing.T) {
	_, container := render(t).pod(t)
	checkImage(t, "deployment", container.Image)
	if container.Command != nil {
		t.Errorf("replaces the image's entry point by %v", container.Command)
	}
	checkCommand(t, "deployment", container.Args)
}

func TestThePodIsConfiguredWithoutAWarning(t *testing.T) {
	c := render(t)
	values := c.variables(t)
	getenv, environ := environment(values)
	settings, err := config.Load(getenv)
	if err != nil {
		t.Fatal(err)
	}
	for _, warning := range append(settings.Warnings(), config.Unknown(environ)...) {
		t.Error(warning)
	}
	if !settings.Herald.Enabled() || !settings.API.Token.Set() {
		t.Error("no lane, or no token")
	}
	for name := range c.settings.Data {
		if slices.ContainsFunc([]string{"DSN", "TOKEN", "API_KEY"}, func(secret string) bool { return strings.HasSuffix(name, secret) }) {
			t.Errorf("%s is a secret and stands in the ConfigMap", name)
		}
	}
}

// nothing is a queue without rows.
type nothing struct{}

func (nothing) CountRequests(context.Context) (queued, sent, failed int64, err error) {
	return 0, 0, 0, nil
}
func (nothing) CountHooks(context.Context) (total, active int64, err error) { return 0, 0, nil }

// answer asks the real HTTP interface of a process that is ready or not.
func answer(ready bool, path string) int {
	handler := api.New(api.Config{
		Counts: nothing{}, Token: "a probe has none", Now: time.Now,
		Ready: func(context.Context) (bool, []string) { return ready, nil },
	})
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
	return recorder.Code
}

// Probes ask paths that exist, at the port that is listened on. Only readiness
// may depend on what is outside: a database that is away must restart nobody.
func TestProbesAskWhatTheyMean(t *testing.T) {
	c := render(t)
	_, container := c.pod(t)
	_, port, err := net.SplitHostPort(c.variables(t)["WAYBILL_LISTEN"])
	if err != nil || len(container.Ports) != 1 || strconv.Itoa(int(container.Ports[0].ContainerPort)) != port {
		t.Fatalf("listens on %q, opens %v", port, container.Ports)
	}
	for _, test := range []struct {
		name    string
		probe   *corev1.Probe
		unready int
	}{
		{"startup", container.StartupProbe, http.StatusOK},
		{"liveness", container.LivenessProbe, http.StatusOK},
		{"readiness", container.ReadinessProbe, http.StatusServiceUnavailable},
	} {
		if test.probe == nil || test.probe.HTTPGet == nil {
			t.Errorf("no %s probe", test.name)
			continue
		}
		get := test.probe.HTTPGet
		if get.Port.StrVal != container.Ports[0].Name {
			t.Errorf("%s asks port %s", test.name, get.Port.String())
		}
		if yes, no := answer(true, get.Path), answer(false, get.Path); yes != http.StatusOK || no != test.unready {
			t.Errorf("%s: %s says %d when ready and %d when not, want 200 and %d", test.name, get.Path, yes, no, test.unready)
		}
	}
	if seconds := container.ReadinessProbe.TimeoutSeconds; seconds <= 2 {
		t.Errorf("readiness is given %d s; it looks at its dependencies for 2", seconds)
	}
}

func TestThePodMayTakeItsTimeToStop(t *testing.T) {
	spec, _ := render(t).pod(t)
	if given := spec.TerminationGracePeriodSeconds; given == nil || time.Duration(*given)*time.Second <= grace(t) {
		t.Errorf("grace period %v s, want more than %v", given, grace(t))
	}
}

// There is always somebody to hand hooks over to: while a new version comes,
// and while nodes are drained.
func TestThereIsAlwaysAnotherPod(t *testing.T) {
	c := render(t)
	d := c.deployment.Spec
	if d.Replicas == nil || *d.Replicas < 2 {
		t.Fatalf("replicas %v", d.Replicas)
	}
	if r := d.Strategy.RollingUpdate; r == nil || r.MaxUnavailable.IntValue() != 0 || r.MaxSurge.IntValue() < 1 {
		t.Errorf("rolling update %+v", r)
	}
	if b := c.budget.Spec; b.MinAvailable != nil || b.MaxUnavailable == nil || b.MaxUnavailable.IntValue() != 1 {
		t.Errorf("budget %+v", b)
	}
	if len(d.Template.Spec.TopologySpreadConstraints) == 0 {
		t.Error("both may land on one node")
	}
}

// Selectors that miss select nothing, and nothing complains.
func TestSelectorsMeetThePod(t *testing.T) {
	c := render(t)
	pod := labels.Set(c.deployment.Spec.Template.Labels)
	selectors := map[string]*metav1.LabelSelector{
		"deployment": c.deployment.Spec.Selector, "budget": c.budget.Spec.Selector, "policy": &c.policy.Spec.PodSelector,
		"service": {MatchLabels: c.service.Spec.Selector},
	}
	for i, s := range c.deployment.Spec.Template.Spec.TopologySpreadConstraints {
		selectors["spread "+strconv.Itoa(i)] = s.LabelSelector
	}
	for name, s := range selectors {
		selector, err := metav1.LabelSelectorAsSelector(s)
		if err != nil || selector.Empty() || !selector.Matches(pod) {
			t.Errorf("%s: %v does not select %v (%v)", name, s, pod, err)
		}
	}
	if port := c.service.Spec.Ports[0].TargetPort.StrVal; port != c.deployment.Spec.Template.Spec.Containers[0].Ports[0].Name {
		t.Errorf("the service leads to port %q", port)
	}
}

func TestMemoryIsBoundedAndTheCollectorKnowsTheBound(t *testing.T) {
	_, container := render(t).pod(t)
	requests, limits := container.Resources.Requests, container.Resources.Limits
	if requests.Cpu().IsZero() || requests.Memory().IsZero() || limits.Memory().Cmp(*requests.Memory()) < 0 {
		t.Errorf("requests %v, limits %v", requests, limits)
	}
	for _, variable := range container.Env {
		if variable.Name != "GOMEMLIMIT" {
			continue
		}
		soft, err := resource.ParseQuantity(strings.TrimSuffix(variable.Value, "B"))
		if err != nil || soft.Cmp(*limits.Memory()) >= 0 {
			t.Errorf("GOMEMLIMIT %s is not below %s (%v)", variable.Value, limits.Memory(), err)
		}
		return
	}
	t.Error("no GOMEMLIMIT")
}

// open says whether the policy lets the pod call a TCP or UDP port of anybody.
func open(rules []networkingv1.NetworkPolicyEgressRule, port int) bool {
	for _, rule := range rules {
		for _, p := range rule.Ports {
			if p.Port != nil && p.Port.IntValue() == port {
				return true
			}
		}
	}
	return false
}

// Everything that the settings name can be reached, and names can be resolved.
func TestThePolicyLetsWaybillWork(t *testing.T) {
	c := render(t)
	if !slices.Equal(c.policy.Spec.PolicyTypes, []networkingv1.PolicyType{"Ingress", "Egress"}) {
		t.Errorf("policy types %v", c.policy.Spec.PolicyTypes)
	}
	getenv, _ := environment(c.variables(t))
	settings, err := config.Load(getenv)
	if err != nil {
		t.Fatal(err)
	}
	ports := []int{53, 80, 443}
	for _, address := range []string{settings.Herald.DSN.Driver().Addr, settings.Ledger.Driver().Addr, settings.Temporal.Address} {
		_, port, _ := net.SplitHostPort(address)
		number, _ := strconv.Atoi(port)
		ports = append(ports, number)
	}
	for _, port := range ports {
		if !open(c.policy.Spec.Egress, port) {
			t.Errorf("port %d is closed", port)
		}
	}
	if in := c.policy.Spec.Ingress; len(in) != 1 || len(in[0].From) == 0 || in[0].Ports[0].Port.IntValue() != int(c.service.Spec.Ports[0].Port) {
		t.Errorf("ingress %+v", in)
	}
}

// The networks that are kept from receivers' rules are those that Waybill
// denies by default, no fewer and no more.
func TestThePolicyDeniesWhatWaybillDenies(t *testing.T) {
	var excepted []string
	for _, rule := range render(t).policy.Spec.Egress {
		for _, to := range rule.To {
			if to.IPBlock == nil || to.IPBlock.Except == nil {
				continue
			}
			whole := netip.MustParsePrefix(to.IPBlock.CIDR)
			for _, network := range to.IPBlock.Except {
				p, err := netip.ParsePrefix(network)
				if err != nil || p.Masked() != p || !whole.Contains(p.Addr()) || p.Bits() <= whole.Bits() {
					t.Errorf("%s is not a part of %s (%v)", network, whole, err)
				}
				excepted = append(excepted, network)
			}
		}
	}
	var denied []string
	for _, network := range egress.DefaultDeny() {
		denied = append(denied, network.String())
	}
	slices.Sort(excepted)
	slices.Sort(denied)
	if !slices.Equal(excepted, denied) {
		t.Errorf("excepted %v\ndenied   %v", excepted, denied)
	}
}
