package store

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"reeve"
)

const categoryColumns = `name, folded`

func scanCategory(r scanner) (c reeve.Category, err error) {
	defer wrapCorrupt("categories", &c.ID, &err)
	h, folded := head{to: &c.Record}, ""
	return c, h.scan(r, &c.Name, &folded)
}

// Category reads a category.
func (r *JournalReader) Category(ctx context.Context, id string) (reeve.Category, error) {
	c, ok, err := record(ctx, r, scanCategory, "categories", categoryColumns, id, false)
	if err == nil && !ok {
		err = notFound("category", id)
	}
	if err == nil {
		err = r.see(c.ID)
	}
	return c, err
}

// Categories lists the categories the hand sees, by name.
func (r *JournalReader) Categories(ctx context.Context) ([]reeve.Category, error) {
	var c clause
	c.add("workspace_id = ? AND deleted_at = 0", r.who.Workspace)
	r.within(&c, "id")
	return all(ctx, r.snap, scanCategory, `SELECT `+recordColumns+categoryColumns+` FROM categories WHERE `+c.String()+
		` ORDER BY folded, id`, c.args...)
}

// ResolveCategories gives the ids of categories that are named by id or by name, in any case. Ids that are in keep
// stay, also when their category is gone. A name that there is not is an error that lists those there are.
func (s *Snap) ResolveCategories(ctx context.Context, workspace string, names, keep []string) ([]string, error) {
	out := make([]string, 0, len(names))
	var list []reeve.Category
	for i, name := range names {
		if slices.Contains(keep, name) {
			if !slices.Contains(out, name) {
				out = append(out, name)
			}
			continue
		}
		if list == nil {
			var err error
			if list, err = s.Journal(JournalScope{Workspace: workspace, All: true}).Categories(ctx); err != nil {
				return nil, err
			}
		}
		at := slices.IndexFunc(list, func(c reeve.Category) bool { return c.ID == name })
		if at < 0 {
			at = slices.IndexFunc(list,
				func(c reeve.Category) bool { return fold(c.Name) == fold(strings.TrimSpace(name)) })
		}
		if at < 0 {
			return nil, noCategory(i, name, list)
		}
		if id := list[at].ID; !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out, nil
}

// noCategory refuses the name of a category that is not there, and names some that are.
func noCategory(place int, name string, list []reeve.Category) error {
	const most = 20
	known := "there are none yet; reeve journal categories create NAME makes one"
	if len(list) > 0 {
		var names []string
		for _, c := range list[:min(len(list), most)] {
			names = append(names, c.Name)
		}
		known = "there are " + strings.Join(names, ", ")
		if len(list) > most {
			known += " and " + strconv.Itoa(len(list)-most) + " more"
		}
	}
	return (&reeve.Error{Code: reeve.Validation, Message: "category " + strconv.Quote(name) + " does not exist",
		Fields: []reeve.Field{
			{Path: "/categories/" + strconv.Itoa(place), Message: "is no category",
				Expected: "the id or the name of a category"}}}).Hintf("%s", known)
}

func (w *JournalWriter) putCategory(ctx context.Context, c *reeve.Category) error {
	w.tell(reeve.KeyCategory)
	return w.put(ctx, "categories", categoryColumns, &c.Record, c.Name, fold(c.Name))
}

// freeName refuses a name that another row of a table has, or that passes for an id. The names of categories and labels
// are short: they are compared without regard to case.
func (w *JournalWriter) freeName(ctx context.Context, table, what, id, name string) (string, error) {
	name, err := reeve.CheckTitle("/name", name)
	if err != nil {
		return "", err
	}
	if err := reeve.CheckName(fold(name)); err != nil {
		return "", err
	}
	if len([]rune(name)) > maxName {
		return "", reeve.InvalidField("/name", "is too long", "1 to 100 characters")
	}
	other, taken, err := one(ctx, w.snap, value[string], `SELECT id FROM `+table+
		` WHERE workspace_id = $1 AND folded = $2 AND deleted_at = 0 AND id <> $3`,
		w.who.Workspace, fold(name), id)
	if err == nil && taken {
		err = &reeve.Error{Code: reeve.AlreadyExists, Message: "a " + what + " named \"" + name +
			"\" is there already: " + other,
			Fields: []reeve.Field{{Path: "/name", Message: "is taken by " + other, Expected: "a name of its own"}}}
	}
	return name, err
}

const maxName = 100 // characters of a category's or label's name

// CreateCategory makes a category.
func (w *JournalWriter) CreateCategory(ctx context.Context, in reeve.CategoryRequest) (c reeve.Category, err error) {
	if c.Name, err = w.freeName(ctx, "categories", "category", "", in.Name); err != nil {
		return c, err
	}
	c.ID = w.newID(reeve.PrefixCategory)
	return c, w.putCategory(ctx, &c)
}

// UpdateCategory renames a category.
func (w *JournalWriter) UpdateCategory(ctx context.Context, id string,
	in reeve.CategoryRequest) (reeve.Category, error) {
	c, err := w.Category(ctx, id)
	if err != nil {
		return c, err
	}
	name, err := w.freeName(ctx, "categories", "category", id, in.Name)
	if err != nil || name == c.Name {
		return c, err
	}
	c.Name = name
	return c, w.putCategory(ctx, &c)
}

// DeleteCategory removes a category that has no tasks.
func (w *JournalWriter) DeleteCategory(ctx context.Context, id string) error {
	c, err := w.Category(ctx, id)
	if err != nil {
		return err
	}
	_, has, err := one(ctx, w.snap, value[string],
		`SELECT id FROM tasks WHERE category_id = $1 AND deleted_at = 0 LIMIT 1`, id)
	if err != nil {
		return err
	}
	if has {
		return reeve.Errorf(reeve.Conflict, "category %q still has tasks", c.Name).Hintf("move or delete them first")
	}
	w.remove(&c.Record)
	return w.putCategory(ctx, &c)
}
