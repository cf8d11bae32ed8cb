package deploy

import (
	"path/filepath"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// cluster is everything that `kubectl apply -k deploy/kubernetes` creates, in
// the types of the Kubernetes API.
type cluster struct {
	namespace  corev1.Namespace
	account    corev1.ServiceAccount
	settings   corev1.ConfigMap
	service    corev1.Service
	deployment appsv1.Deployment
	budget     policyv1.PodDisruptionBudget
	policy     networkingv1.NetworkPolicy
	// secret is the example, which the kustomization leaves out.
	secret corev1.Secret
}

// render builds the kustomization as kubectl does. What the API does not know
// is an error here; the real one would drop it without a word.
func render(t *testing.T) *cluster {
	t.Helper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).
		Run(filesys.MakeFsOnDisk(), filepath.Join(root, "deploy/kubernetes"))
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{}
	into := map[string]any{
		"v1 Namespace": &c.namespace, "v1 ServiceAccount": &c.account, "v1 ConfigMap": &c.settings, "v1 Service": &c.service,
		"apps/v1 Deployment": &c.deployment, "policy/v1 PodDisruptionBudget": &c.budget,
		"networking.k8s.io/v1 NetworkPolicy": &c.policy,
	}
	for _, r := range resources.Resources() {
		kind := r.GetApiVersion() + " " + r.GetKind()
		object, expected := into[kind]
		if !expected {
			t.Fatalf("nobody expects a %s %s", kind, r.GetName())
		}
		delete(into, kind)
		if r.GetKind() != "Namespace" && r.GetNamespace() != "waybill" {
			t.Errorf("%s is in namespace %q", kind, r.GetNamespace())
		}
		text, err := r.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		decode(t, kind, text, object)
	}
	for kind := range into {
		t.Errorf("there is no %s", kind)
	}
	decode(t, "the Secret", []byte(read(t, "deploy/kubernetes/secret.example.yaml")), &c.secret)
	return c
}

// decode is the API server's strict decoder: fields that it does not know,
// doubled ones, and ones in another case are errors.
func decode(t *testing.T, what string, text []byte, into any) {
	t.Helper()
	document, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	faults, err := json.UnmarshalStrict(document, into)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	for _, fault := range faults {
		t.Errorf("%s: %v", what, fault)
	}
}

// pod is the pod's specification, with its one container.
func (c *cluster) pod(t *testing.T) (corev1.PodSpec, corev1.Container) {
	t.Helper()
	spec := c.deployment.Spec.Template.Spec
	if len(spec.Containers) != 1 {
		t.Fatalf("%d containers", len(spec.Containers))
	}
	return spec, spec.Containers[0]
}

// variables are what the container's process sees, and where each comes from.
func (c *cluster) variables(t *testing.T) map[string]string {
	t.Helper()
	_, container := c.pod(t)
	values := map[string]string{}
	for _, source := range container.EnvFrom {
		switch {
		case source.ConfigMapRef != nil && source.ConfigMapRef.Name == c.settings.Name:
			for name, value := range c.settings.Data {
				values[name] = value
			}
		case source.SecretRef != nil && source.SecretRef.Name == c.secret.Name && c.secret.Namespace == c.namespace.Name:
			for name, value := range c.secret.StringData {
				values[name] = value
			}
		default:
			t.Errorf("there is nothing to fill %+v from", source)
		}
	}
	for _, variable := range container.Env {
		values[variable.Name] = variable.Value
	}
	return values
}
