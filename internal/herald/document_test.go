package herald

import "testing"

func TestDocument(t *testing.T) {
	req := Request{ObjectPHID: "PHID-TASK-abcd", Created: 12345, Modified: 99999, LastEpoch: 5}
	p := mustParse(t, `{"triggerPHIDs":["PHID-HRUL-abcd"],"silent":false}`)
	const want = `{
  "object": {
    "type": "TASK",
    "phid": "PHID-TASK-abcd"
  },
  "triggers": [
    {
      "phid": "PHID-HRUL-abcd"
    }
  ],
  "action": {
    "test": false,
    "silent": false,
    "secure": false,
    "epoch": 12345
  },
  "transactions": []
}
`
	if got := string(Document(req, p, nil)); got != want {
		t.Errorf("got %s", got)
	}
}

func TestDocumentPassesValuesThrough(t *testing.T) {
	req := Request{ObjectPHID: "é/\x7f<"}
	p := mustParse(t, `{"test":null,"silent":{"0":1.0,"1":[]},"secure":"\/","triggerPHIDs":{"x":null,"y":{"a":{}}}}`)
	const want = `{
  "object": {
    "type": "????",
    "phid": "\u00e9/` + "\x7f" + `<"
  },
  "triggers": [
    {
      "phid": null
    },
    {
      "phid": {
        "a": []
      }
    }
  ],
  "action": {
    "test": null,
    "silent": [
      1,
      []
    ],
    "secure": "/",
    "epoch": 0
  },
  "transactions": [
    {
      "phid": "b"
    },
    {
      "phid": "a"
    }
  ]
}
`
	if got := string(Document(req, p, []string{"b", "a"})); got != want {
		t.Errorf("got %s", got)
	}
}

// Properties that are a list have no flags, and are delivered with defaults.
func TestDocumentOfAList(t *testing.T) {
	req := Request{ObjectPHID: "PHID-TASK-abcd"}
	fromList := Document(req, mustParse(t, `["forever",1]`), nil)
	if got, want := string(fromList), string(Document(req, Properties{}, nil)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestObjectType(t *testing.T) {
	for phid, want := range map[string]string{
		"PHID-TASK-abcd": "TASK", "PHID-TASK-": "TASK", "PHID-ta k-x": "ta k", "PHID-T\nSK-x": "T\nSK",
		"PHID-XACT-TASK-abcd": "XACT", "PHID-T.SK-a": "T.SK",
		"": NoType, "PHID": NoType, "PHID-": NoType, "PHID-TASK": NoType,
		"PHID-TAS-abcd": NoType, "PHID-TASKS-abcd": NoType, "PHID-T-SK-abcd": NoType,
		"phid-TASK-abcd": NoType, " PHID-TASK-abcd": NoType, "XPHID-TASK-abcd": NoType, "PHID--ASK-abc": NoType,
		"PHID-\u00e9AB-x": "\u00e9AB", "PHID-\u00e9ABC-x": NoType,
	} {
		if got := ObjectType(phid); got != want {
			t.Errorf("%q: got %q, want %q", phid, got, want)
		}
	}
}
