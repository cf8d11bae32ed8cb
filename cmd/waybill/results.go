package main

import (
	"encoding/json"
	"maps"
	"slices"

	"waybill/internal/herald"
	"waybill/workflows"
)

// resultView is how an attempt ended, as it stands in a row.
type resultView struct {
	Result string  `json:"result"` // okay, fail, or none: nothing was sent
	At     *moment `json:"at"`
	// Type and Code are Phorge's errorType and errorCode, Text says them in words.
	// They are there on success too: http and 200.
	Type string `json:"error_type,omitempty"`
	Code string `json:"error_code,omitempty"`
	Text string `json:"text,omitempty"`
}

// viewResult reads what a row's properties say about its last attempt.
func viewResult(result string, epoch int64, properties []byte) resultView {
	r := resultView{Result: result, At: at(epoch)}
	known := knownProperties(properties)
	if known.Type != "" {
		r.Type, r.Code = known.Type, known.Code.String()
		r.Text = workflows.DescribeError(r.Type, r.Code)
	}
	return r
}

// ago is the result for a column.
func (r resultView) ago(now int64) string {
	text := r.Result
	if r.Text != "" && r.Result != "okay" {
		text += ", " + r.Text
	}
	if r.At != nil {
		text += ", " + span(now-int64(*r.At)) + " ago"
	}
	return text
}

// properties are the keys of the column that Phorge writes. Others may hold
// anything, secrets too, and are shown to nobody.
type properties struct {
	Retry        any         `json:"retry"`
	Transactions phids       `json:"transactionPHIDs"`
	Triggers     phids       `json:"triggerPHIDs"`
	Test         any         `json:"test"`
	Silent       any         `json:"silent"`
	Secure       any         `json:"secure"`
	Type         string      `json:"errorType"`
	Code         herald.Code `json:"errorCode"`
}

// phids are PHP's list or its map of PHIDs to themselves.
type phids []string

// UnmarshalJSON takes the strings and lets everything else be.
func (p *phids) UnmarshalJSON(raw []byte) error {
	var list []any
	var keyed map[string]any
	if json.Unmarshal(raw, &list) != nil && json.Unmarshal(raw, &keyed) == nil {
		for _, key := range slices.Sorted(maps.Keys(keyed)) {
			list = append(list, keyed[key])
		}
	}
	for _, v := range list {
		if s, ok := v.(string); ok {
			*p = append(*p, s)
		}
	}
	return nil
}

// knownProperties reads them one by one: a key of an odd type, or a column that
// is no object, leaves the others as they are.
func knownProperties(raw []byte) (p properties) {
	var keys map[string]json.RawMessage
	_ = json.Unmarshal(raw, &keys)
	for name, into := range map[string]any{
		"retry": &p.Retry, "transactionPHIDs": &p.Transactions, "triggerPHIDs": &p.Triggers, "test": &p.Test,
		"silent": &p.Silent, "secure": &p.Secure, "errorType": &p.Type, "errorCode": &p.Code,
	} {
		if v, ok := keys[name]; ok {
			_ = json.Unmarshal(v, into)
		}
	}
	return p
}
