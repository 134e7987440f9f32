"""Whether a judge is one: questions whose right answers are known without people, and what a judge makes of them."""
