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
	h, folded := recordScanner{record: &c.Record}, ""
	return c, h.scan(r, &c.Name, &folded)
}

// Category returns a category.
func (r *JournalReader) Category(ctx context.Context, id string) (reeve.Category, error) {
	c, ok, err := findRecord(ctx, r, scanCategory, "categories", categoryColumns, id, false)
	if err == nil && !ok {
		err = notFound("category", id)
	}
	if err == nil {
		err = r.useCategory(c.ID)
	}
	return c, err
}

// Categories returns the categories in the scope, ordered by name.
func (r *JournalReader) Categories(ctx context.Context) ([]reeve.Category, error) {
	var c whereClause
	c.add("workspace_id = ? AND deleted_at = 0", r.scope.Workspace)
	r.addScope(&c, "id")
	return queryAll(ctx, r.snap, scanCategory, `SELECT `+recordColumns+categoryColumns+` FROM categories
		WHERE `+c.String()+
		` ORDER BY folded, id`, c.args...)
}

// ResolveCategories returns the ids of categories that are given by id or by name, ignoring case. Ids in keep are
// returned unchanged, even if their category does not exist. An unknown name is a Validation error that lists the
// existing names.
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
				func(c reeve.Category) bool { return foldText(c.Name) == foldText(strings.TrimSpace(name)) })
		}
		if at < 0 {
			return nil, unknownCategoryError(i, name, list)
		}
		if id := list[at].ID; !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out, nil
}

// unknownCategoryError returns the error for an unknown category. Its hint lists existing categories.
func unknownCategoryError(index int, name string, list []reeve.Category) error {
	const maxListed = 20
	hint := "there are no categories yet; create one with reeve journal categories create NAME"
	if len(list) > 0 {
		var names []string
		for _, c := range list[:min(len(list), maxListed)] {
			names = append(names, c.Name)
		}
		hint = "existing categories: " + strings.Join(names, ", ")
		if len(list) > maxListed {
			hint += " and " + strconv.Itoa(len(list)-maxListed) + " more"
		}
	}
	return (&reeve.Error{Code: reeve.Validation, Message: "category " + strconv.Quote(name) + " does not exist",
		Fields: []reeve.Field{
			{Path: "/categories/" + strconv.Itoa(index), Message: "is not a category",
				Expected: "the id or the name of a category"}}}).Hintf("%s", hint)
}

func (w *JournalWriter) putCategory(ctx context.Context, c *reeve.Category) error {
	w.emitChange(reeve.KeyCategory)
	return w.putRecord(ctx, "categories", categoryColumns, &c.Record, c.Name, foldText(c.Name))
}

// checkNameFree returns the cleaned name. It refuses a name that is too long, looks like an id, or belongs to another
// row of the table, ignoring case.
func (w *JournalWriter) checkNameFree(ctx context.Context, table, what, id, name string) (string, error) {
	name, err := reeve.CheckTitle("/name", name)
	if err != nil {
		return "", err
	}
	if err := reeve.CheckName(foldText(name)); err != nil {
		return "", err
	}
	if len([]rune(name)) > maxNameLength {
		return "", reeve.InvalidField("/name", "is too long", "1 to 100 characters")
	}
	other, taken, err := queryOne(ctx, w.snap, scanValue[string], `SELECT id FROM `+table+
		` WHERE workspace_id = $1 AND folded = $2 AND deleted_at = 0 AND id <> $3`,
		w.scope.Workspace, foldText(name), id)
	if err == nil && taken {
		err = &reeve.Error{Code: reeve.AlreadyExists, Message: "a " + what + " named \"" + name +
			"\" already exists: " + other,
			Fields: []reeve.Field{{Path: "/name", Message: "is taken by " + other,
				Expected: "a name that is not in use"}}}
	}
	return name, err
}

const maxNameLength = 100 // characters of a category's or label's name

// CreateCategory creates a category.
func (w *JournalWriter) CreateCategory(ctx context.Context, in reeve.CategoryRequest) (c reeve.Category, err error) {
	if c.Name, err = w.checkNameFree(ctx, "categories", "category", "", in.Name); err != nil {
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
	name, err := w.checkNameFree(ctx, "categories", "category", id, in.Name)
	if err != nil || name == c.Name {
		return c, err
	}
	c.Name = name
	return c, w.putCategory(ctx, &c)
}

// DeleteCategory deletes a category that has no tasks.
func (w *JournalWriter) DeleteCategory(ctx context.Context, id string) error {
	c, err := w.Category(ctx, id)
	if err != nil {
		return err
	}
	_, has, err := queryOne(ctx, w.snap, scanValue[string],
		`SELECT id FROM tasks WHERE category_id = $1 AND deleted_at = 0 LIMIT 1`, id)
	if err != nil {
		return err
	}
	if has {
		return reeve.Errorf(reeve.Conflict, "category %q still has tasks", c.Name).Hintf("move or delete them first")
	}
	w.markDeleted(&c.Record)
	return w.putCategory(ctx, &c)
}
