"""What trimtab is made of besides itself: its bill of materials, and the licences of it."""
