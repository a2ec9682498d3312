package store

import "reeve"

// delegator is a reeve.Delegator as it is stored, with the rights that no API shows.
type delegator struct {
	reeve.Delegator
	Had *reeve.Rights `json:"had,omitempty"`
}

func delegatorsText(list []reeve.Delegator) string {
	if len(list) == 0 {
		return ""
	}
	rows := make([]delegator, len(list))
	for i, d := range list {
		rows[i] = delegator{d, d.Had}
	}
	return verbatim(rows)
}

func delegatorsFrom(s string) (list []reeve.Delegator, err error) {
	var rows []delegator
	err = decode("on_behalf_of", s, &rows)
	for _, d := range rows {
		d.Delegator.Had = d.Had
		list = append(list, d.Delegator)
	}
	return list, err
}
