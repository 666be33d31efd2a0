"""What people see: one table in every form, pages and cards from templates, and what all drawings share."""
